"""The reader of sources for `init` and checks: tokens, kernel definitions, types. Takes any macro."""
