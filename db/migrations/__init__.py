"""Schema changes, oldest first, in `versions`."""
