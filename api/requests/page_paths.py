"""Paths of the pages for people."""

STATIC = "/static/"
SIGN_IN = "/login"
SIGN_OUT = "/logout"
NEXT_CHARACTERS = 2000
"""Limit on the path to which a browser comes back after it has signed in."""
PUBLIC = (SIGN_IN, STATIC)
"""Beginnings of paths that need no key."""
_PAGES = ("/jobs/", "/compare", "/fleet", "/registry", "/new", "/answers/", SIGN_IN, SIGN_OUT)


def is_page(path: str) -> bool:
    """True for what a browser shows to a person."""
    return path == "/" or path.startswith(_PAGES)


def is_compressed(path: str) -> bool:
    """True for what a browser loads whole and that is long."""
    return is_page(path) or path.endswith("/points")


def is_public(path: str) -> bool:
    """True for what reveals nothing about any tenant."""
    return path == SIGN_IN or path.startswith(STATIC)
