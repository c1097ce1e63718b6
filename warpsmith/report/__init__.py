"""The result bundle for people: tables, HTML and JSON."""
