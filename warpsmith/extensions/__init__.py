"""Ring 2: what varies, each behind a port of ring 1, which reaches it through `registry` only."""
