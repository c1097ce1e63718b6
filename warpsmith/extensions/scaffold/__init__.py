"""Skeletons: job files for kernels that exist only as source."""
