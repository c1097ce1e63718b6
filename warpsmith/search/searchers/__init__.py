"""Searchers: ask and tell over a feasible set."""
