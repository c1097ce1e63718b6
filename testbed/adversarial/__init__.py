"""Kernels that must be refused or accepted, and the acceptance procedure that they go through."""
