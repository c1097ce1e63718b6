"""Value objects of the domain: frozen, and built on the standard library and pydantic only."""
