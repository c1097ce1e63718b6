"""The language Triton: jobs from its scripts, its back end, its checks."""
