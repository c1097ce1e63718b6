"""Pages over real HTTP: who may see them, what they may load, and how errors look."""

import gzip
import re

import httpx2
import pytest

from api.pages.assets import asset_path, assets
from api.requests.auth import COOKIE
from db.repositories.jobs import JobRepository
from testbed.api_service import Service
from testbed.plain_http import NO_TLS
from warpsmith.testing.jobs import scale_job

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
OURS = {"Sec-Fetch-Site": "same-origin"}


def browser(service: Service, key: str | None = None) -> httpx2.Client:
    """A client with a cookie instead of a header."""
    cookies = {} if key is None else {COOKIE: key}
    return httpx2.Client(base_url=service.http.base_url, cookies=cookies, timeout=60, verify=NO_TLS)


def sign_in(client: httpx2.Client, key: str, path: str = "/login", **headers: str) -> httpx2.Response:
    return client.post(path, content=f"key={key}", headers={**FORM, **OURS, **headers})


def test_who_has_no_key_is_asked_for_one_and_comes_back(service: Service) -> None:
    with browser(service) as client:
        asked = client.get("/?state=done")
        assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2F%3Fstate%3Ddone")
        form = client.get(asked.headers["location"])
        assert 'action="/login?next=/%3Fstate%3Ddone"' in form.text
        signed = sign_in(client, service.key, "/login?next=/%3Fstate%3Ddone")
        assert (signed.status_code, signed.headers["location"]) == (303, "/?state=done")
        cookie = signed.headers["set-cookie"]
        assert all(word in cookie for word in (COOKIE, "HttpOnly", "SameSite=strict", "Path=/"))
        assert client.get("/").status_code == 200
        assert client.get("/v1/jobs").status_code == 200
        assert client.post("/logout", headers=OURS).headers["location"] == "/login"
        assert client.get("/").status_code == 303


def test_a_wrong_key_is_refused_with_words(service: Service) -> None:
    with browser(service) as client:
        refused = sign_in(client, "ws_wrong")
        assert refused.status_code == 401
        assert "unknown, revoked or expired" in refused.text
        assert "set-cookie" not in refused.headers


def test_a_program_without_a_key_is_told_as_before(service: Service) -> None:
    with browser(service) as client:
        refused = client.get("/v1/jobs")
        assert (refused.status_code, refused.json()["title"]) == (401, "No API key")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {},
    ],
)
def test_a_page_of_another_site_can_do_nothing(service: Service, headers: dict[str, str]) -> None:
    with service.database.write() as session:
        job_id = JobRepository(session).create(scale_job())[0].id
    with browser(service, service.key) as client:
        refused = client.post(f"/v1/jobs/{job_id}/cancel", headers=headers)
        assert refused.status_code == 403
        assert client.post("/login", content="key=x", headers={**FORM, **headers}).status_code == 403
        assert client.post(f"/v1/jobs/{job_id}/cancel", headers=OURS).json()["state"] == "cancelled"


def test_a_bearer_needs_no_origin(service: Service) -> None:
    with service.database.write() as session:
        job_id = JobRepository(session).create(scale_job())[0].id
    assert service.http.post(f"/v1/jobs/{job_id}/cancel").status_code == 200


@pytest.mark.parametrize(
    "path", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "/v1/jobs", "x"]
)
def test_nobody_is_sent_elsewhere(service: Service, path: str) -> None:
    with browser(service) as client:
        signed = client.post(
            "/login", params={"next": path}, content=f"key={service.key}", headers={**FORM, **OURS}
        )
        assert signed.headers["location"] == "/"


def test_errors_of_pages_are_pages(service: Service) -> None:
    missing = service.http.get("/jobs/nothing")
    assert missing.status_code == 404
    assert "<h1>" in missing.text
    bad = service.http.get("/", params={"state": "<b>tired"})
    assert bad.status_code == 422
    assert "&lt;b&gt;tired" in bad.text and "<b>tired" not in bad.text


@pytest.mark.parametrize("path", ["/", "/login", "/jobs/nothing", "/?state=nope"])
def test_pages_load_and_run_nothing_but_our_own_files(service: Service, path: str) -> None:
    shown = service.http.get(path)
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert shown.headers["cache-control"] == "no-store"
    assert not re.search(
        r"<script(?![^>]* src=)(?![^>]*application/json)|\son\w+=|\sstyle=|javascript:", shown.text
    )
    for link in re.findall(r'(?:src|href)="([^"]+)"', shown.text):
        assert link.startswith(("/", "#")) and not link.startswith("//")


def test_files_are_kept_until_they_change(service: Service) -> None:
    for name, asset in assets().items():
        found = service.http.get(asset_path(name))
        assert found.status_code == 200 and found.content == asset.body
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert gzip.decompress(asset.packed) == asset.body
    old = service.http.get(f"/static/{name}?v=older")
    assert old.headers["cache-control"] == "no-cache"
    known = service.http.get(asset_path(name), headers={"If-None-Match": found.headers["etag"]})
    assert known.status_code == 304


@pytest.mark.parametrize(
    "name", ["../templates/base.html.jinja", "..%2f..%2fpyproject.toml", "nothing.js", ""]
)
def test_there_are_no_other_files(service: Service, name: str) -> None:
    assert service.http.get(f"/static/{name}").status_code == 404


def test_filters_and_pages_of_jobs(service: Service) -> None:
    key = service.new_key("lister")
    with service.database.write() as session:
        for number in range(60):
            job = scale_job(name=f"number-{number:02}", labels={"half": str(number % 2)})
            JobRepository(session).create(job, tenant="lister")
    with browser(service, key) as client:
        first = client.get("/")
        names = re.findall(r"number-\d\d", first.text)
        assert names == [f"number-{n:02}" for n in range(59, 9, -1)]
        older = re.search(r'href="([^"]+)">Older', first.text)
        assert older is not None
        assert re.findall(r"number-\d\d", client.get(older[1]).text) == [
            f"number-{n:02}" for n in range(9, -1, -1)
        ]
        odd = client.get("/", params={"label": "half=1", "name": "", "state": "queued", "device": ""})
        assert len(re.findall(r"number-\d\d", odd.text)) == 30
        assert "No job matches" in client.get("/", params={"name": "tomorrow"}).text


def test_nothing_of_other_tenants(service: Service) -> None:
    with service.database.write() as session:
        JobRepository(session).create(scale_job(name="of-somebody-else"), tenant="others")
    assert "of-somebody-else" not in service.http.get("/").text
