"""Pages in a real browser: every test has a fresh context, and fails if its pages erred or asked elsewhere.

A test that wants another window, scheme or door parametrizes `viewport`, `colour_scheme` or `open_access`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from testbed.api_service import Service, service_settings, serving
from testbed.browser import PATIENCE_MS, Watch, accessibility_problems, chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for this folder; its event loop has ended before tests of other folders run."""
    with chromium() as running:
        yield running


@pytest.fixture
def viewport() -> ViewportSize:
    """The window, in CSS pixels."""
    return ViewportSize(width=1280, height=800)


@pytest.fixture
def colour_scheme() -> Literal["light", "dark"]:
    """What the user's system prefers."""
    return "light"


@pytest.fixture
def open_access() -> bool:
    """Whether the service asks for no key."""
    return True


@pytest.fixture
def service(tmp_path: Path, migrated_sqlite: str, open_access: bool) -> Iterator[Service]:
    """A service of one test, on a new SQLite database, without a worker."""
    settings = service_settings(tmp_path / "data", migrated_sqlite)
    with serving(settings, open_access=open_access) as running:
        yield running


@pytest.fixture
def home(service: Service) -> str:
    """Where the pages of the service are, without a slash at the end."""
    return str(service.http.base_url).rstrip("/")


@pytest.fixture
def context(
    browser: Browser, home: str, viewport: ViewportSize, colour_scheme: Literal["light", "dark"]
) -> Iterator[BrowserContext]:
    """A user's browser: no cookies yet; paths such as `/docs` are those of the service."""
    opened = browser.new_context(base_url=home, viewport=viewport, color_scheme=colour_scheme)
    opened.set_default_timeout(PATIENCE_MS)
    yield opened
    # Before the service ends, which waits for streams that a page has open.
    opened.close()


@pytest.fixture
def watch(context: BrowserContext, home: str) -> Iterator[Watch]:
    """What goes wrong on the test's pages; the test fails in the end if anything unexpected did."""
    watching = Watch(context, home)
    yield watching
    assert watching.problems() == []


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Page:
    """An empty tab."""
    return context.new_page()


@pytest.fixture
def axe() -> Callable[[Page], list[str]]:
    """Finds what shuts users out of a page: lines to compare with `[]`."""
    return accessibility_problems
