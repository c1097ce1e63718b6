"""Checks of what a launch wrote."""
