"""Exports of results, opened in the tools that they are for."""
