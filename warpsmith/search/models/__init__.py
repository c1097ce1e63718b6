"""Surrogate models of the search."""
