"""A job on a real device from the form to the download, over the death of every process of the service."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from testbed.browser import PATIENCE_MS, Watch
from testbed.service import Service
from warpsmith.testing.jobs import scale_job

pytestmark = pytest.mark.slow
TRIALS = 6


def job() -> dict[str, Any]:
    """A job whose search is long enough to be interrupted, and whose planner is asked by hand."""
    made = scale_job().model_dump(mode="json", exclude_unset=True)
    made["name"] = "from-the-page"
    made["workloads"] = [{"dimensions": {"n": 65536}}]
    made["searcher"] = "random"
    made["parameters"].append({"name": "PAD", "values": list(range(16))})
    made["budget"] = {"trials": TRIALS, "seconds": 300}
    return made


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of its own, with its worker, on SQLite."""
    running = Service(tmp_path / "data", {"WARPSMITH_AGENT_PROVIDERS": "planner=external"}).start()
    yield running
    running.stop()


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """A page whose service will die, and come back at the same address."""
    context = browser.new_context(base_url=service.url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    watch = Watch(context, service.url)
    yield context.new_page()
    context.close()
    lost = ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY"]
    # What htmx says of a part that was asked for while nobody answered.
    lost += ["htmx:afterRequest", "htmx:sendError"]
    assert [p for p in watch.problems() if not any(word in p for word in lost)] == []


def test_from_the_form_to_the_download(page: Page, service: Service) -> None:
    page.goto("/new")
    page.get_by_label("YAML").fill(yaml.safe_dump(job(), sort_keys=False))
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*")
    job_id = page.url.rpartition("/")[2]
    expect(page.locator("#live")).to_have_text("live")

    page.get_by_role("link", name="Agents").click()
    # The question comes by itself; it may have been there before.
    expect(page.get_by_role("heading", name="Question for the planner")).to_be_visible()
    page.get_by_label("Answer, as JSON").fill(json.dumps({"plan": "let the rules do it"}))
    page.get_by_role("button", name="Send the answer").click()
    expect(page.get_by_role("heading", name="Question for the planner")).to_have_count(0)

    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#live")).to_have_text("live")
    service.kill()
    expect(page.locator("#live")).to_have_text("reconnecting")
    service.start()
    expect(page.locator("#live")).to_have_text("live")
    # The end is told by the stream, and the page loads its result.
    expect(page.get_by_role("link", name="Download all")).to_be_visible()
    expect(page.locator(".badge").first).to_have_text("done")
    expect(page.locator(".chart-summary")).to_contain_text("measured")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all").click()
    with zipfile.ZipFile(download.value.path()) as bundle:
        found = json.loads(bundle.read("from-the-page/result.json"))
        assert b"from-the-page" in bundle.read("from-the-page/report.html")
    assert found["id"] == job_id
    told = service.get(f"/v1/jobs/{job_id}/events")["items"]
    assert [e["data"]["state"] for e in told if e["kind"] == "state"][-1] == "done"
