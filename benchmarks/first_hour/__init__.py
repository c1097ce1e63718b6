"""What a new user meets: kernels of their own, references in NumPy, defaults only."""
