"""Tuning: pure decisions, and the loops that drive devices through ports."""
