"""What a kernel's own indices say of its launch and of the shapes of its buffers."""
