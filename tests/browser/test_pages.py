"""The pages in a real browser: live figures, forms, hostile text, keyboard, two schemes and two widths."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from api.requests.auth import COOKIE
from db.engine import utc_now
from db.identifiers import new_id
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.views.finished_lessons import learn
from testbed.api_service import Service
from testbed.browser import Watch
from testbed.stages import ended, failed, searched
from warpsmith.domain.state import TaskKind
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import StepPayload, StepResult

HOSTILE = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"
NARROW = ViewportSize(width=390, height=844)
WIDE = ViewportSize(width=1280, height=800)
CUT = """[...document.querySelectorAll("table.stack tbody :is(td, th)")].filter(
    (cell) => cell.getBoundingClientRect().right > innerWidth).map((cell) => cell.textContent)"""
"""Cells of tables that stand outside of the window, or are reached by scrolling sideways alone."""
SOURCE = """__kernel void scale(__global const float* x, __global float* y, const int n) {
  const int i = get_global_id(0);
  if (i < n) y[i] = 2.0f * x[i];
}
"""


@pytest.fixture
def jobs(service: Service) -> dict[str, str]:
    """A job that waits, one that is searched, one that gained and one that failed; with a question and a
    step."""
    found = {}
    with service.database.write() as session:
        for name in ("waiting", "searched", "ended", "failed"):
            job = scale_job(name=name, labels={"team": HOSTILE[:60].replace("=", " ")})
            source = f"// {HOSTILE}\n{job.kernel.text}"
            job = job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": source})})
            found[name] = JobRepository(session).create(job)[0].id
        searched(session, found["searched"])
        ended(session, found["ended"])
        assert learn(session, found["ended"])
        missing = {"cuda": f"NVRTC is missing {HOSTILE}"}
        WorkerRepository(session).register(new_id(), "host", 1, "1.0", ("gpu.x",), (DEVICE,), missing)
        failed(session, found["failed"])
        payload = StepPayload(role="templater", round=1)
        task = TaskRepository(session).enqueue(found["waiting"], TaskKind.AGENT_STEP, "agents", payload)
        until = utc_now() + timedelta(hours=1)
        row = AgentRequestRepository(session).add(
            task, "templater", 1, HOSTILE, {"kernel": HOSTILE}, {"type": "object"}, until
        )
        found["request"] = row.id
        step = StepResult(provider="openai", prompt=HOSTILE, reply=HOSTILE, notes=(HOSTILE,))
        AgentStepRepository(session).add(found["waiting"], task.id, payload, step)
    return found


def paths(jobs: dict[str, str]) -> list[str]:
    """Every page there is."""
    job = [f"/jobs/{jobs[name]}" for name in ("waiting", "searched", "ended", "failed")]
    each = [f"{path}{part}" for path in job for part in ("", "/trials", "/candidates", "/agents", "/log")]
    compared = f"/compare?a={jobs['searched']}&b={jobs['ended']}"
    return [
        "/",
        "/login",
        "/fleet",
        "/registry",
        "/new",
        f"/new?from={jobs['ended']}",
        "/compare",
        compared,
        *each,
    ]


@pytest.mark.parametrize(
    ("viewport", "colour_scheme"),
    [
        pytest.param(WIDE, "light", id="wide-light"),
        pytest.param(NARROW, "dark", id="narrow-dark"),
        pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.nightly),
        pytest.param(NARROW, "light", id="narrow-light", marks=pytest.mark.nightly),
    ],
)
def test_every_page_opens_fits_and_shuts_nobody_out(
    page: Page, jobs: dict[str, str], viewport: ViewportSize, axe: Callable[[Page], list[str]]
) -> None:
    for path in paths(jobs):
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        if page.locator(".trial-chart").count():
            expect(page.locator(".chart-summary")).not_to_be_empty()
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], path
        assert axe(page) == [], path
        assert page.evaluate(CUT) == [], path
        assert "hacked" not in page.title()
        assert page.locator("img").count() == 0, path


def test_what_happens_is_shown_where_it_stands(page: Page, service: Service, jobs: dict[str, str]) -> None:
    page.goto("/")
    expect(page.locator("#live")).to_have_text("live")
    row = page.locator(f'tr[data-job="{jobs["waiting"]}"]')
    expect(row.locator("[data-field=state]")).to_have_text("queued")
    with service.database.write() as session:
        JobRepository(session).cancel(jobs["waiting"])
    expect(row.locator("[data-field=state]")).to_have_text("cancelled")


def test_a_job_is_watched_to_its_end(page: Page, service: Service, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['searched']}")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator(".chart-summary")).to_contain_text("measured")
    with service.database.write() as session:
        JobRepository(session).cancel(jobs["searched"])
    # It loads again, with its result.
    expect(page.locator(".badge").first).to_have_text("cancelled")
    expect(page.get_by_role("link", name="Download all")).to_be_visible()
    expect(page.locator("#live")).to_have_count(0)


def test_a_job_that_gained_begins_with_its_winner(
    page: Page, context: BrowserContext, jobs: dict[str, str]
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/jobs/{jobs['ended']}")
    card = page.locator("main section").first
    expect(card.locator("h2")).to_have_text("Your kernel is faster")
    assert page.locator("main").inner_text().count("1.41×") == 1
    assert "1.41x" not in card.inner_text()
    assert "1 of 2 workloads faster than before; n=1001 was withdrawn" in card.inner_text()
    expect(card).to_contain_text("2.00×, 95 % 1.90× to 2.10×")
    expect(card).to_contain_text("BLOCK=256 PER=4")
    assert card.locator(".diff tr.added").count() and not card.get_by_text("#if WS_").count()
    url = page.url.split("/jobs")[0]
    for what, words, copied in (
        ("export", "Copy the command", f"warpsmith export {jobs['ended']} --out tuned --url {url}"),
        ("tuned-1", "Copy the tuned source", "// ended, tuned by Warpsmith"),
    ):
        button = card.locator(f"button[data-copies={what}]")
        expect(button).to_have_text(words)
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith(copied)


def test_a_candidate_is_shown_in_its_fastest_configuration(page: Page, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['ended']}/candidates")
    card = page.locator("main section").nth(1)
    expect(card).to_contain_text("fastest configuration, BLOCK=256, PER=4")
    assert card.locator(".diff tr.added", has_text="#define PER 4").count() == 1
    expect(card.locator("details", has=page.get_by_text("Template", exact=True))).not_to_contain_text("PER 4")
    # Nothing was measured yet, and nothing is chosen.
    page.goto(f"/jobs/{jobs['waiting']}/candidates")
    expect(page.locator(".empty")).to_have_text("No candidate yet.")


def test_a_job_that_failed_says_why_and_nothing_that_is_not_so(page: Page, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['failed']}")
    card = page.locator("main section").first
    expect(card.locator(".reason")).to_contain_text("12 of 4096 elements differ")
    expect(card.get_by_role("link", name="Change and submit again")).to_have_class("button primary")
    expect(page.locator(".button.primary")).to_have_count(1)
    said = " ".join(page.locator("main section, main .figures").all_inner_texts())
    for words in ("±", "No trial", "Known", "so far", "Trials", "None.", "–"):
        assert words not in said, words


def test_a_click_on_a_heading_sorts(page: Page, jobs: dict[str, str]) -> None:
    page.goto("/")
    names = page.locator("td.name a")
    assert names.all_inner_texts() == ["failed", "ended", "searched", "waiting"]
    page.get_by_role("button", name="Speed-up").click()
    # Two have no speed-up, and stay behind in their order.
    assert names.all_inner_texts() == ["ended", "searched", "failed", "waiting"]
    page.get_by_role("button", name="Job", exact=True).click()
    assert names.all_inner_texts() == ["ended", "failed", "searched", "waiting"]
    page.goto(f"/jobs/{jobs['ended']}/trials")
    page.get_by_role("button", name="Speed-up").click()
    assert page.locator("tbody tr td:first-child").all_inner_texts() == ["1", "0", "2", "3", "4"]


def test_the_list_says_why_a_job_failed(page: Page, jobs: dict[str, str]) -> None:
    page.goto("/")
    row = page.locator(f'tr[data-job="{jobs["failed"]}"]')
    expect(row).to_contain_text("12 of 4096 elements differ")
    expect(row).to_contain_text(jobs["failed"][-6:])
    expect(row.locator("progress")).to_have_count(0)
    expect(row.locator(".device")).to_have_text("TEST, OpenCL 1")
    expect(page.locator(f'tr[data-job="{jobs["searched"]}"] progress')).to_be_visible()


def test_the_log_has_a_line_for_each_event(page: Page, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['ended']}")
    page.get_by_role("link", name="Log").click()
    lines = page.locator("tbody tr").all_inner_texts()
    assert "queued" in lines[0] and "done" in lines[-1] and "verified" in lines[-1]


def test_the_registry_leads_to_the_job_of_each_winner(page: Page, jobs: dict[str, str]) -> None:
    page.goto("/")
    page.get_by_role("link", name="Registry").click()
    row = page.locator("tbody tr", has_text="n=4096")
    expect(row).to_contain_text("1.90×")
    expect(row).to_contain_text("BLOCK=256, PER=4")
    expect(row.get_by_role("link")).to_have_attribute("href", f"/jobs/{jobs['ended']}")
    expect(page.locator("tbody tr", has_text="n=1001")).to_contain_text("your kernel")


def test_the_chart_tells_a_trial_to_the_keyboard(page: Page, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['ended']}")
    page.wait_for_selector(".trial-chart.drawn")
    chart = page.locator(".chart")
    chart.focus()
    chart.press("Home")
    expect(page.locator(".chart-said")).to_contain_text("Trial 0")
    # The configuration comes from the service.
    expect(page.locator(".chart-said")).to_contain_text("=")
    chart.press("ArrowRight")
    expect(page.locator(".chart-said")).to_contain_text("Trial 1")
    page.get_by_role("button", name="by time").click()
    expect(page.locator(".chart canvas")).to_be_visible()


def test_the_choice_of_light_or_dark_is_kept(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_keyboard_reaches_the_content_first(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_pasted_source_becomes_a_job(page: Page, service: Service, watch: Watch) -> None:
    watch.expect("status of 422")
    page.goto("/new")
    page.get_by_label("Source").fill("int main() {}")
    page.get_by_role("button", name="Write the job file").click()
    expect(page.locator("#source-problem")).to_contain_text("kernel")
    page.get_by_label("Source").fill(SOURCE)
    page.get_by_role("button", name="Write the job file").click()
    expect(page.get_by_label("YAML")).to_have_value(text_with("entry: scale"))
    text = page.get_by_label("YAML").input_value()
    page.get_by_label("YAML").fill(text.replace("role: output", "role: nonsense"))
    page.get_by_role("button", name="Check").click()
    finding = page.locator(".findings .problem").first
    expect(finding).to_contain_text("role")
    finding.get_by_role("button").click()
    selected = page.evaluate(
        "(() => { const a = document.getElementById('job');"
        " return a.value.slice(a.selectionStart, a.selectionEnd); })()"
    )
    assert "role: nonsense" in selected
    page.get_by_label("YAML").fill(text)
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".notice")).to_contain_text("No errors")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*")
    with service.database.read() as session:
        assert JobRepository(session).get(page.url.rpartition("/")[2]).name


def text_with(word: str) -> "re.Pattern[str]":
    return re.compile(rf"[\s\S]*{re.escape(word)}[\s\S]*")


def test_a_question_is_answered(page: Page, watch: Watch, jobs: dict[str, str]) -> None:
    watch.expect("status of 422")
    page.goto(f"/jobs/{jobs['waiting']}/agents")
    page.get_by_label("Answer, as JSON").fill("not JSON")
    page.get_by_role("button", name="Send the answer").click()
    expect(page.locator(".problem")).to_contain_text("no JSON")
    assert page.get_by_label("Answer, as JSON").input_value() == "not JSON"
    page.get_by_label("Answer, as JSON").fill('{"template": 7}')
    page.get_by_role("button", name="Send the answer").click()
    expect(page.locator(".problem")).to_be_visible()


def test_two_jobs_are_compared(page: Page, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['ended']}")
    page.get_by_role("link", name="Compare with another").click()
    page.get_by_label("Second job").fill(jobs["searched"])
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Winners")).to_be_visible()


def test_what_an_ended_job_leaves_is_downloaded(page: Page, jobs: dict[str, str]) -> None:
    page.goto(f"/jobs/{jobs['ended']}")
    for words, name in (("Download all", ".zip"), ("Report", "-report.html"), ("Result as JSON", ".json")):
        with page.expect_download() as download:
            page.get_by_role("link", name=words).click()
        assert download.value.suggested_filename.endswith(name)
        assert download.value.path().stat().st_size > 100


@pytest.mark.parametrize("open_access", [False])
def test_a_key_opens_the_pages(page: Page, context: BrowserContext, service: Service, watch: Watch) -> None:
    watch.expect("status of 401")
    page.goto("/fleet")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("API key").fill("ws_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown")
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    cookie = next(c for c in context.cookies() if c["name"] == COOKIE)
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.parametrize("open_access", [False])
def test_jobs_of_another_tenant_are_not_there(
    page: Page, context: BrowserContext, service: Service, watch: Watch, home: str
) -> None:
    watch.expect("status of 404")
    with service.database.write() as session:
        theirs = JobRepository(session).create(scale_job(name="theirs"), tenant="others")[0].id
    context.add_cookies([{"name": COOKIE, "value": service.key, "url": home}])
    for path in (
        f"/jobs/{theirs}",
        f"/jobs/{theirs}/candidates",
        f"/jobs/{theirs}/agents",
        f"/compare?a={theirs}",
    ):
        reply = page.goto(path)
        assert reply is not None and reply.status == 404
        assert "theirs" not in page.content()
