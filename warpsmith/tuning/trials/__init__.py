"""Trials: a slice proposes, compiles, checks, times and prunes configurations."""
