"""Benches of the service: model check, chaos, scale. They start servers and workers of their own."""
