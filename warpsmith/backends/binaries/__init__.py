"""Readers of compilers' binaries and of PTX; nothing that they read is executed."""
