"""All queries. A repository works inside the given session and never commits."""
