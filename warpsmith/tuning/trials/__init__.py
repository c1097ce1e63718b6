"""Trials: what a slice proposes, compiles, checks, times and prunes."""
