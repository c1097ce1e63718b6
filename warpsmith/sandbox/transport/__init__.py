"""Frames and messages between a host and its child."""
