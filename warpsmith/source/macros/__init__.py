"""Macros: what a use of one becomes, and which of them switch a kernel on or off."""
