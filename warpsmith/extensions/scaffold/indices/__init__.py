"""Derives the launch and the shapes of buffers from a kernel's own indices."""
