"""Checks of a job before anything runs: pure functions from a job to findings."""
