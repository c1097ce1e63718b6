"""Job files: read from YAML or JSON with line numbers, sources and headers collected."""
