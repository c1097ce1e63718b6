"""Variants, inputs and children that a tuning session runs."""
