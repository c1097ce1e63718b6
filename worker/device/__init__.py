"""A worker's device: set-up, lock, waiting, caches of binaries, references and ceilings."""
