"""What compilers made, as it is read: nothing of it is executed."""
