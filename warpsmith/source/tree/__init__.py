"""A kernel's source in the form used by rules: syntax tree, edits, included headers."""
