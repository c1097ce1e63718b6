"""Lessons of finished jobs: similarity of kernels, and templates that gained or failed on them."""
