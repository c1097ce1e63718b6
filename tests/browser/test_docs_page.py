"""The documentation of the API opens in a browser, which asks nobody but the service for it."""

import pytest
from playwright.sync_api import Page, ViewportSize, expect


@pytest.mark.parametrize("viewport", [ViewportSize(width=w, height=800) for w in (390, 1280)], ids=str)
def test_the_documentation_opens(page: Page, viewport: ViewportSize) -> None:
    reply = page.goto("/docs")
    assert reply is not None and reply.status == 200
    expect(page.get_by_role("heading", name="Warpsmith")).to_be_visible()
    assert page.evaluate("innerWidth") == viewport["width"]
