"""Readings of a source that only a scaffold needs: structs, files, switches, uses of pointers."""
