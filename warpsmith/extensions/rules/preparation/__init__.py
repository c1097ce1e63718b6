"""Passes over a source before any rule reads it: dead branches, other platforms, coordinates of HIP."""
