"""The worker's side of the child processes."""
