"""What a kernel loads and stores, and where: shared arrays, wide accesses, data loaded twice."""
