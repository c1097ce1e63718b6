"""Values that the text fixes, or that are the same for every thread."""
