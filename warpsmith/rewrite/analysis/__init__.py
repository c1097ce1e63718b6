"""What rules prove of a kernel: bounds, loops, accesses, side effects. Reads syntax trees, edits nothing."""
