"""Feasible sets and searchers (ask and tell). Only `optuna_study` and `stored_study` import optuna."""

from warpsmith.search.feasible import FeasibleSet, enumerate_space
from warpsmith.search.launched import launched
from warpsmith.search.make import make_searcher

__all__ = ["FeasibleSet", "enumerate_space", "launched", "make_searcher"]
