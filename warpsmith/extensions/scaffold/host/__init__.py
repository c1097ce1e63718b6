"""Host code as far as launches depend on it: its blocks, its variables, and their values at a place."""
