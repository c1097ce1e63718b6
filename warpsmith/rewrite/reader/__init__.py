"""The reader of sources for `init` and checks: tokens, kernel definitions, types. Accepts any macro."""
