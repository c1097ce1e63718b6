"""Decisions: the next actions of a job and the reason for its end, as pure functions of its rows. Loads no
NumPy."""
