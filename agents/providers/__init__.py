"""Providers that answer an agent step, a model over HTTP or an external answer, and their order."""
