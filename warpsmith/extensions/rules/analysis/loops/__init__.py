"""Loops of a thread or of a team, and what their iterations share."""
