"""Faults put into the product, to see whether its cheap tests catch them."""
