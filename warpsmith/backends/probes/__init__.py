"""Environment probes: macros by which a source depends on where, when or as what it is compiled."""
