"""Streams that end or are refused: the page says so, comes again, and shows what happened meanwhile."""

import pytest
from playwright.sync_api import Page, Route, expect

from api.routes import event_stream
from db.repositories.jobs import JobRepository
from testbed.api_service import Service
from testbed.browser import Watch
from testbed.deadlines import stretched
from warpsmith.testing.jobs import scale_job


@pytest.fixture
def job_id(service: Service) -> str:
    """A job that waits."""
    with service.database.write() as session:
        return JobRepository(session).create(scale_job(name="waits"))[0].id


def test_a_refused_stream_is_asked_for_again(page: Page, job_id: str, watch: Watch) -> None:
    """Browsers give up after an answer such as a proxy's 503, and nothing has ended."""
    watch.expect("status of 503")
    refused: list[str] = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, body="")

    for path in ("/", f"/jobs/{job_id}"):
        refused.clear()
        page.route("**/stream*", refuse_once)
        page.goto(path)
        expect(page.locator("#live")).to_have_text("reconnecting")
        expect(page.locator("#live")).to_have_text("live")
        assert refused


def test_what_happens_between_two_streams_is_shown(
    page: Page, service: Service, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LIFETIME_S", 0.2)
    monkeypatch.setattr(event_stream, "HEARTBEAT_S", 0.1)
    monkeypatch.setattr(event_stream, "RETRY_MS", 3000)
    page.goto("/")
    expect(page.locator("#live")).to_have_text("reconnecting")
    with service.database.write() as session:
        JobRepository(session).cancel(job_id)
    monkeypatch.setattr(event_stream, "LIFETIME_S", 300.0)
    row = page.locator(f'tr[data-job="{job_id}"]')
    again_ms = 1000 * stretched(20)
    expect(row.locator("[data-field=state]")).to_have_text("cancelled", timeout=again_ms)
    expect(page.locator("#live")).to_have_text("live")
