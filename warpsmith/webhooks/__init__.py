"""Webhooks: what is sent, how it is signed, and to which addresses."""

from warpsmith.webhooks.signature import verify

__all__ = ["verify"]
