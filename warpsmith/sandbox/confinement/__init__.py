"""Confinement of a child process: system calls, files, resources."""
