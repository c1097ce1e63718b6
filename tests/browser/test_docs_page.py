"""The documentation of the API opens in a browser, which asks nobody but the service for it."""

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from testbed.browser import Watch

NARROW, WIDE = (ViewportSize(width=width, height=800) for width in (390, 1280))


@pytest.mark.parametrize("viewport", [NARROW, pytest.param(WIDE, marks=pytest.mark.nightly)], ids=str)
def test_the_documentation_opens(page: Page, viewport: ViewportSize) -> None:
    reply = page.goto("/docs")
    assert reply is not None and reply.status == 200
    expect(page.get_by_role("heading", name="Warpsmith")).to_be_visible()
    assert page.evaluate("innerWidth") == viewport["width"]


def test_the_other_documentation_asks_nobody_else(page: Page, watch: Watch) -> None:
    # It would load the mark of its authors.
    # The browser tells of the request, and that the page's policy refuses it.
    watch.expect("request to another host.*logo-mini.svg")
    watch.expect("logo-mini.svg.*violates .*Content Security Policy")
    with page.expect_event("requestfailed", lambda request: "logo-mini.svg" in request.url):
        page.goto("/redoc")
    expect(page.get_by_role("heading", name="Warpsmith")).to_be_visible()
