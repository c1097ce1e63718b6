"""A link from another site to a page: whoever is signed in sees the page, anybody else the form."""

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from api.requests.auth import COOKIE
from db.repositories.jobs import JobRepository
from testbed.api_service import Service
from warpsmith.testing.jobs import scale_job

ELSEWHERE = "http://elsewhere.example/"


def follow(context: BrowserContext, address: str) -> Page:
    """Click on a link to an address, on a page of another site."""

    def serve(route: Route) -> None:
        route.fulfill(status=200, content_type="text/html", body=f'<a href="{address}">a job</a>')

    context.route(ELSEWHERE, serve)
    page = context.new_page()
    page.goto(ELSEWHERE)
    page.get_by_role("link").click()
    return page


@pytest.mark.parametrize("open_access", [False])
def test_who_is_signed_in_comes_to_the_page(context: BrowserContext, service: Service, home: str) -> None:
    cookie = {"name": COOKIE, "value": service.key, "url": home, "httpOnly": True, "sameSite": "Strict"}
    context.add_cookies([cookie])  # type: ignore[list-item]  # the driver's own name of these fields
    with service.database.write() as session:
        job_id = JobRepository(session).create(scale_job(name="linked"))[0].id
    page = follow(context, f"{home}/jobs/{job_id}")
    expect(page.get_by_role("heading", name="linked")).to_be_visible()


@pytest.mark.parametrize("open_access", [False])
def test_who_is_not_comes_to_the_form_and_then_to_the_page(
    context: BrowserContext, service: Service, home: str
) -> None:
    page = follow(context, f"{home}/?name=a%26b%3D%22c")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Name has")).to_have_value('a&b="c')
