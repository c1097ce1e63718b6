"""Clients of the HTTP API: `Client` waits for each reply, `AsyncClient` awaits it."""

from warpsmith.client.async_client import AsyncClient
from warpsmith.client.sync_client import Client

__all__ = ["AsyncClient", "Client"]
