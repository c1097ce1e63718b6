"""Ways to use the service: Python, HTTP, the command line, agents over MCP."""
