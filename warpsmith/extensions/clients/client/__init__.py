"""Clients of the HTTP API: `Client` waits for each reply, `AsyncClient` awaits it."""

from warpsmith.extensions.clients.client.async_client import AsyncClient
from warpsmith.extensions.clients.client.sync_client import Client

__all__ = ["AsyncClient", "Client"]
