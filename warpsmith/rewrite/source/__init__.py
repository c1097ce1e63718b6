"""A kernel's source as rules hold it: syntax tree, edits, included headers."""
