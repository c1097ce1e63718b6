"""One search that several workers share: the pool of proposals."""
