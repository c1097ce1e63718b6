"""The HTTP API: routes, problem details, nothing that needs a device."""
