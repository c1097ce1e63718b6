"""Reading and refusing requests: authentication, limits, problem details, the OpenAPI description."""
