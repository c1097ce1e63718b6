"""Exports inside a program, on a GPU."""
