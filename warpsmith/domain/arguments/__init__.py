"""Arguments of a kernel: types, fields, memory layout, draws of values."""
