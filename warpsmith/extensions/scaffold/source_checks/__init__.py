"""Checks of a job file against its kernel source, as text."""
