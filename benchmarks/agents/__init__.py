"""Benchmarks of the agents."""
