"""Timing protocol, statistics and roofline."""
