"""Whether a source depends on where, when or as what it is compiled."""
