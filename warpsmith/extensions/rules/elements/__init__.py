"""Rules for kernels of one element a thread: what a thread keeps, shares, or computes of several elements."""
