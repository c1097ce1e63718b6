"""The result bundle for people: tables, HTML, JSON."""
