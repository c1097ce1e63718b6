"""The usual spelling of a kernel: one of the many texts that mean the same, the one that rules know best."""
