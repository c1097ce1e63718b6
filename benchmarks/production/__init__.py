"""Kernels that serving projects publish, as jobs. They come out of checkouts and are never committed."""
