"""How often the harness is fooled, refuses an honest kernel, or takes noise for a gain."""
