"""Source text as tokens: brackets, scopes, numbers, and which preprocessor branches are taken."""
