"""Inputs, comparison and guards: whether a kernel computed the right thing."""
