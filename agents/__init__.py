"""Agents: roles with typed contracts, and the providers that answer them."""
