"""Declarations found in text that may try to hide them; used by checks of device variables."""
