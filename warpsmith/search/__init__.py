"""Feasible sets and searchers (ask and tell). One module imports optuna."""

from warpsmith.search.feasible import FeasibleSet, enumerate_space
from warpsmith.search.make import make_searcher

__all__ = ["FeasibleSet", "enumerate_space", "make_searcher"]
