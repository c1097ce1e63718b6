"""Launches of a kernel as host code has them."""
