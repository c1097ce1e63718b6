"""Fixtures that every folder of tests may use."""

from tests.servers import postgres_session, postgres_url, redis_session, redis_url

__all__ = ["postgres_session", "postgres_url", "redis_session", "redis_url"]
