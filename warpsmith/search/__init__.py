"""Feasible sets and searchers (ask and tell). Only `optuna_study` and `stored_study` import optuna."""

from warpsmith.search.factory import Hints, make_searcher
from warpsmith.search.spaces.feasible_set import FeasibleSet, enumerate_space
from warpsmith.search.spaces.launch_prior import launched

__all__ = ["FeasibleSet", "Hints", "enumerate_space", "launched", "make_searcher"]
