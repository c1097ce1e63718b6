"""Evaluator of Python text, which is never run: for scripts of Triton and of other tuners."""
