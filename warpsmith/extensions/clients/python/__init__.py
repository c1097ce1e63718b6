"""What `import warpsmith` offers to a program: tuning in one call, and results."""
