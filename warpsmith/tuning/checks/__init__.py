"""Checks beyond the workloads: other inputs, other shapes, trivial answers, sanitizers."""
