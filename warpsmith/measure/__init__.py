"""Timing protocol, statistics, roofline: how long it took, and how sure that is."""
