"""Skeletons: a job file for a kernel that so far is only source."""
