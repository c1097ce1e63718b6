"""Supervision of a worker's processes."""
