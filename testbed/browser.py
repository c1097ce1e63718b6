"""A browser for tests of pages, and what it must not see: errors, and requests to anybody else."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

from testbed.chromium import ADVICE, chromium_path
from testbed.servers import give_up

ROOT = Path(__file__).resolve().parents[1]
AXE = ROOT / "tests" / "browser" / "vendor" / "axe.min.js"
PATIENCE_MS = 120_000
"""Patience of the driver: only what hangs takes so long on any machine."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # Whoever asks for another host is caught, and gets no answer on any machine.
    "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
)
GRAVE = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Browser]:
    """This machine's Chromium, without a window; the test is skipped, and fails in CI, if there is none.

    Between start and end this thread counts as inside of an event loop, so nothing else may run one here.
    """
    path = chromium_path()
    if path is None:
        give_up(ADVICE)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Notes what pages of a context do wrong.

    These are errors on the console, among which the browser counts what the page's policy refuses and answers
    that are errors, exceptions of scripts, and requests to any host but `home`.

    Args:
        home: origin that pages may ask, such as `http://127.0.0.1:8000`.
    """

    def __init__(self, context: BrowserContext, home: str) -> None:
        self._home = home
        self._seen: list[str] = []
        self._expected: list[str] = []
        context.on("console", self._console)
        context.on("weberror", lambda error: self._seen.append(f"exception: {error.error}"))
        context.on("request", self._request)
        context.on("page", self._page)

    def expect(self, pattern: str) -> None:
        """Announce what the test provokes: each pattern has to be found in a problem, and pardons those."""
        self._expected.append(pattern)

    def problems(self) -> list[str]:
        """What was seen and not expected, and what was expected and not seen."""
        pardoned = [seen for seen in self._seen if any(re.search(p, seen) for p in self._expected)]
        unseen = [p for p in self._expected if not any(re.search(p, seen) for seen in pardoned)]
        return [seen for seen in self._seen if seen not in pardoned] + [f"did not see {p!r}" for p in unseen]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location.get("url", "")
            self._seen.append(f"{message.type}: {message.text} ({place})")

    def _request(self, request: Request) -> None:
        self._address(request.url)

    def _page(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._address(re.sub("^ws", "http", socket.url)))

    def _address(self, url: str) -> None:
        own = url == self._home or url.startswith((f"{self._home}/", "data:", f"blob:{self._home}/"))
        if not own:
            self._seen.append(f"request to another host: {url}")


def accessibility_problems(page: Page) -> list[str]:
    """What axe finds serious or critical on a page as it is shown now: rule, element and reason, a line each.

    The script enters as a debugger's does, so the page keeps its policy and needs none for this.
    """
    page.evaluate(f"{AXE.read_text()}; 0")
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{violation['impact']} {violation['id']}: {' '.join(map(str, node['target']))}: "
        + " ".join(node["failureSummary"].split())
        for violation in found
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]
