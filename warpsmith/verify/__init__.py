"""Inputs, comparison and guards that decide whether a kernel computed the right result."""
