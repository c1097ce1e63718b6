"""Signing in over real HTTP: what a browser is given, and what nobody gets without a key."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest

from api.pages.sign_in import FORM_BYTES, FORM_FIELDS
from api.requests import auth
from api.requests.page_paths import NEXT_CHARACTERS
from db.api_keys import KeyScope, new_key
from db.repositories.jobs import JobRepository
from testbed.api_service import Service, service_settings, serving
from testbed.stages import HOSTILE, searched
from tests.api.test_bad_input import problem_of
from tests.api.test_pages import FORM, OURS, browser, sign_in
from warpsmith.testing.jobs import scale_job


@pytest.fixture
def client(service: Service) -> Iterator[httpx2.Client]:
    """A browser that has no key yet."""
    with browser(service) as opened:
        yield opened


@pytest.mark.parametrize(
    "path",
    ["//[x", "http://[", "/login", "/login?next=/fleet", "/logout", "/\tfleet", "/ fleet\n", "", "/v1"],
)
def test_whatever_is_to_come_next_the_form_is_shown_and_leads_to_a_page(
    service: Service, client: httpx2.Client, path: str
) -> None:
    form = client.get("/login", params={"next": path})
    assert (form.status_code, 'action="/login?next=/"' in form.text) == (200, True)
    signed = sign_in(client, service.key, "/login?" + urlencode({"next": path}))
    assert (signed.status_code, signed.headers["location"]) == (303, "/")


@pytest.mark.parametrize("path", ["/fleet", "/jobs/some/agents", "/compare?a=1&b=2", "/?name=é"])
def test_a_page_of_the_service_may_come_next(service: Service, client: httpx2.Client, path: str) -> None:
    asked = client.get(path)
    assert asked.status_code == 303
    form = client.get(asked.headers["location"])
    assert form.status_code == 200
    signed = sign_in(client, service.key, asked.headers["location"])
    assert str(client.build_request("GET", signed.headers["location"]).url) == str(
        client.build_request("GET", path).url
    )


def test_a_path_that_is_too_long_is_not_come_back_to(client: httpx2.Client) -> None:
    for path in (f"/?name={'x' * NEXT_CHARACTERS}", f"/jobs/{'x' * NEXT_CHARACTERS}"):
        asked = client.get(path)
        assert (asked.status_code, asked.headers["location"]) == (303, "/login")


def test_a_link_of_another_site_is_followed_once_more_from_here(client: httpx2.Client) -> None:
    path = "/jobs/a%22%3E%3Cb%3E?x=%22%3E%3Cb%3E&y"
    first = client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
    assert first.status_code == 200
    assert 'content="0;url=/jobs/a%22%3E%3Cb%3E?x=%22%3E%3Cb%3E&amp;y"' in first.text
    assert "default-src 'none'" in first.headers["content-security-policy"]
    second = client.get(path, headers=OURS)
    assert second.headers["location"].startswith("/login?next=%2Fjobs%2Fa%2522")


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/fleet", 200), ("/jobs/nothing", 404)])
def test_a_key_that_has_used_up_its_rate_is_told_so_on_a_page(
    service: Service, path: str, status: int
) -> None:
    with browser(service, service.new_key(requests_per_s=0.01)) as client:
        assert client.get(path).status_code == status
        refused = client.get(path)
        assert (refused.status_code, "Too many requests" in refused.text) == (429, True)
        assert int(refused.headers["retry-after"]) >= 1
        assert "<h1>" in refused.text and "default-src" in refused.headers["content-security-policy"]


def test_a_key_without_the_scope_is_told_which_on_a_page(service: Service) -> None:
    with browser(service, service.new_key(scopes=(KeyScope.SUBMIT,))) as client:
        refused = client.get("/")
        assert (refused.status_code, "lacks the scope &#39;read&#39;" in refused.text) == (403, True)


def test_a_form_that_is_none_of_ours_is_refused_with_words(client: httpx2.Client) -> None:
    headers = {**FORM, **OURS}
    many = client.post("/login", content="&".join(["key=x"] * (FORM_FIELDS + 1)), headers=headers)
    assert (many.status_code, f"send {FORM_FIELDS} fields at most" in many.text) == (422, True)
    long = client.post("/login", content=f"key={'x' * FORM_BYTES}", headers=headers)
    assert (long.status_code, f"{FORM_BYTES} bytes at most" in long.text) == (413, True)
    for content in (b"", b"\xff\xfe", b"other=1", b"key=%00%0d%0aSet-Cookie:x"):
        refused = client.post("/login", content=content, headers=headers)
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers


def test_behind_https_the_cookie_never_leaves_it(service: Service, client: httpx2.Client) -> None:
    # As a proxy of this machine says it; uvicorn believes no other.
    signed = sign_in(client, service.key, **{"X-Forwarded-Proto": "https"})
    assert "; Secure" in signed.headers["set-cookie"]
    assert "; Secure" not in sign_in(client, service.key).headers["set-cookie"]


def test_a_bearer_goes_before_the_cookie(service: Service) -> None:
    with service.database.write() as session:
        JobRepository(session).create(scale_job(name="of-the-cookie"), tenant="of-cookie")
    with browser(service, service.new_key("of-cookie")) as client:
        assert [job["name"] for job in client.get("/v1/jobs").json()["items"]] == ["of-the-cookie"]
        other = {"Authorization": f"Bearer {service.new_key('of-header')}"}
        assert client.get("/v1/jobs", headers=other).json()["items"] == []
        for wrong in ("Bearer", "Bearer x", f"Bearer {new_key()[1]}"):
            problem_of(client.get("/v1/jobs", headers={"Authorization": wrong}), 401)


def test_a_cookie_that_opens_nothing_leads_to_the_form(service: Service) -> None:
    with browser(service, new_key()[1]) as client:
        assert client.get("/fleet").headers["location"] == "/login?next=%2Ffleet"
        problem_of(client.get("/v1/jobs"), 401)


def test_wrong_keys_of_the_form_count_as_others_do(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path)) as service, browser(service) as client:
        replies = [sign_in(client, new_key()[1]) for _ in range(int(auth.WRONG_AT_ONCE) + 20)]
        assert {r.status_code for r in replies[: int(auth.WRONG_AT_ONCE)]} == {401}
        slowed = [r for r in replies if r.status_code == 429]
        assert slowed
        assert all(int(r.headers["retry-after"]) >= 1 and "Not now" in r.text for r in slowed)
        with service.client(new_key()[1]) as program:
            assert program.get("/v1/jobs").status_code == 429


def test_what_others_wrote_is_shown_as_text(service: Service) -> None:
    key = service.new_key("hostile")
    with service.database.write() as session:
        job_id = JobRepository(session).create(scale_job(labels={"a": HOSTILE}), tenant="hostile")[0].id
        searched(session, job_id)
    with browser(service, key) as client:
        for path in (
            "/",
            f"/jobs/{job_id}",
            f"/jobs/{job_id}/candidates",
            "/?" + urlencode({"name": HOSTILE}),
        ):
            shown = client.get(path)
            assert shown.status_code == 200
            assert "<script>alert" not in shown.text
            assert "&lt;script&gt;alert" in shown.text


@pytest.mark.parametrize("part", ["", "/candidates", "/agents"])
def test_a_foreign_job_is_the_same_page_as_none(service: Service, part: str) -> None:
    with service.database.write() as session:
        foreign = JobRepository(session).create(scale_job(), tenant="others")[0].id
    pages = [service.http.get(f"/jobs/{job_id}{part}") for job_id in (foreign, "nothing")]
    assert [p.status_code for p in pages] == [404, 404]
    assert pages[0].text.replace(foreign, "nothing") == pages[1].text
    with browser(service) as client:
        assert client.get(f"/jobs/{foreign}{part}").status_code == 303


def test_pages_are_compressed_and_streams_are_not(service: Service) -> None:
    packed = {"Accept-Encoding": "gzip"}
    assert service.http.get("/", headers=packed).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in service.http.get("/", headers={"Accept-Encoding": "identity"}).headers
    with service.http.stream("GET", "/v1/stream", headers=packed) as stream:
        assert "content-encoding" not in stream.headers
        assert next(stream.iter_raw()).startswith(b"retry:")
