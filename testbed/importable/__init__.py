"""Packages that children import by the names that they have outside; the folder is put on their path."""
