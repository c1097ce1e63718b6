"""Reading Triton files."""
