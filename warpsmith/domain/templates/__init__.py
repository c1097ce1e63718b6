"""Templates: parameters, constraints, binaries, and what became of a configuration."""
