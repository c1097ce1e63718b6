"""Loads and stores of a kernel, and their places: shared arrays, wide accesses, data loaded twice."""
