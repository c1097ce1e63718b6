"""Kernel bodies that rules write."""
