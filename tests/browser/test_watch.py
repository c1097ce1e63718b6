"""The watch over pages sees each thing that it is there for, and nothing on a good page."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from testbed.browser import Watch, accessibility_problems
from testbed.deadlines import Deadline

HOME = "http://127.0.0.1:9"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
GOOD = (
    '<!doctype html><html lang="en"><title>Good</title><main><h1>Good</h1>'
    '<img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></main>'
)


@contextmanager
def watched(browser: Browser, html: str, script: str = "") -> Iterator[tuple[Page, Watch]]:
    """A page with our policy, and its script, as a site that is not there would give them."""
    context = browser.new_context(base_url=HOME)
    context.route(f"{HOME}/missing", lambda route: route.fulfill(status=404))
    context.route(f"{HOME}/script.js", lambda route: route.fulfill(body=script))
    given = {"content-type": "text/html", "content-security-policy": POLICY}
    context.route(f"{HOME}/", lambda route: route.fulfill(body=html, headers=given))
    watch = Watch(context, HOME)
    try:
        page = context.new_page()
        page.goto("/")
        yield page, watch
    finally:
        context.close()


def scripted(browser: Browser, script: str) -> list[str]:
    """What is seen of a page with this script, once it has ended."""
    ended = f"try {{ {script} }} finally {{ setTimeout(() => document.title = 'ended', 50); }}"
    with watched(browser, f"{GOOD}<script src=/script.js></script>", ended) as (page, watch):
        expect(page).to_have_title("ended")
        return watch.problems()


def test_nothing_is_seen_on_a_good_page(browser: Browser) -> None:
    assert scripted(browser, "console.log('fine')") == []


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("console.error('wrong')", "error: wrong"),
        ("console.warn('odd')", "warning: odd"),
        ("setTimeout(() => { throw new Error('thrown'); })", "exception: .*thrown"),
        ("Promise.reject(new Error('refused'))", "exception: .*refused"),
        ("fetch('/missing')", "error: .*404"),
        ("eval('1')", "Content Security Policy"),
        ("document.body.setAttribute('style', 'color: red')", "Content Security Policy"),
        (
            "fetch('http://other.test/').catch(() => 0)",
            "http://other.test/.* violates .*Content Security Policy",
        ),
        (
            "new Image().src = 'http://127.0.0.1:90/x.png'",
            "request to another host: http://127.0.0.1:90/x.png",
        ),
        ("new WebSocket('ws://other.test/')", "ws://other.test/.* violates .*Content Security Policy"),
    ],
)
def test_what_a_script_does_wrong_is_seen(browser: Browser, script: str, seen: str) -> None:
    problems = scripted(browser, script)
    assert any(re.search(seen, problem) for problem in problems), problems


def test_a_policy_refuses_what_stands_in_the_page(browser: Browser) -> None:
    with watched(browser, f"{GOOD}<p style='color: red' onclick='x()'>a</p><script>b()</script>") as (
        _,
        watch,
    ):
        assert sum("Content Security Policy" in problem for problem in watch.problems()) == 3


@pytest.mark.parametrize(
    ("html", "asked"),
    [
        ("<img src='http://other.test/a.png'>", "http://other.test/a.png"),
        ("<script>new WebSocket('ws://other.test/live')</script>", "http://other.test/live"),
    ],
)
def test_a_request_to_another_host_is_seen_where_no_policy_refuses_it(
    browser: Browser, html: str, asked: str
) -> None:
    context = browser.new_context()
    watch = Watch(context, HOME)
    context.route(f"{HOME}/", lambda route: route.fulfill(body=html, content_type="text/html"))
    page = context.new_page()
    page.goto(f"{HOME}/")
    deadline = Deadline(20)
    while not watch.problems() and not deadline.passed():
        page.wait_for_timeout(50)  # a page is loaded before its sockets ask
    context.close()
    assert f"request to another host: {asked}" in watch.problems()


def test_what_a_test_provokes_is_pardoned_and_must_come(browser: Browser) -> None:
    with watched(browser, f"{GOOD}<img alt='' src=/missing>") as (_, watch):
        assert len(watch.problems()) == 1
        watch.expect("status of 404")
        assert watch.problems() == []
        watch.expect("status of 500")
        assert watch.problems() == ["did not see 'status of 500'"]


@pytest.mark.parametrize(
    ("element", "found"),
    [
        ("<p>text</p>", []),
        ("<input>", ["critical label: input: "]),
        ("<button></button>", ["critical button-name: button: "]),
        ("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>", ["critical image-alt: img"]),
    ],
)
def test_axe_names_what_shuts_users_out_and_breaks_no_policy(
    browser: Browser, element: str, found: list[str]
) -> None:
    with watched(browser, GOOD.replace("</main>", f"{element}</main>")) as (page, watch):
        problems = accessibility_problems(page)
        assert watch.problems() == []
    assert len(problems) == len(found)
    assert all(p.startswith(f) for p, f in zip(problems, found, strict=True)), problems
