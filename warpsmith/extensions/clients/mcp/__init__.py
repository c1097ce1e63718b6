"""The service as tools of a user's own agent, over the Model Context Protocol."""
