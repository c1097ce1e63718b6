"""Search that several workers share: the pool of its proposals."""
