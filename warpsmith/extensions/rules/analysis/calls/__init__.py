"""Calls of a kernel, and their effects."""
