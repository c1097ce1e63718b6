"""Checks of a job by running parts of it: compilation, one launch, the reference."""
