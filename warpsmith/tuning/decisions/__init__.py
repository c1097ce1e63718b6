"""Decisions: what a job does next and why it ends, as pure functions of its rows. Loads no NumPy."""
