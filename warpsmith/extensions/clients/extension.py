"""Objects of the clients in the registry."""

from warpsmith.registry import Extension, Kind

EXTENSION = Extension(
    {
        Kind.COMMANDS: {"service": "warpsmith.extensions.clients.commands.registration:add"},
        Kind.HTTP: {"mcp": "warpsmith.extensions.clients.mcp.agent_door:AgentDoor"},
    }
)
