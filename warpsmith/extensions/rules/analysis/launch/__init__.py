"""What a kernel needs of its launch: block, grid, constants, and other launches of a sequence."""
