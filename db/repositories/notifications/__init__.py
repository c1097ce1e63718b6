"""Repositories of webhooks and their deliveries."""
