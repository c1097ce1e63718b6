"""Needs of a kernel from its launch: block, grid, constants, and other launches of a sequence."""
