"""API of `import warpsmith`: tuning in one call, and results."""
