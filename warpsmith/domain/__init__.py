"""The words of the service as frozen value objects: standard library and pydantic only."""
