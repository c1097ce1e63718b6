"""The provider `rules`: rewrite rules and fixed conclusions. No model, no network."""
