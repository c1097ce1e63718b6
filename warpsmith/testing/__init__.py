"""For whoever writes a back end or another part behind a port: suites that every part must pass.

A suite is a base class with a few methods to override; pytest runs what inherits from it. This package needs
pytest; no other part of Warpsmith imports it.
"""
