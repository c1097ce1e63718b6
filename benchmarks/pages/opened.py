"""Seconds and bytes of the pages in a real browser, with 5,000 jobs and one of 10,000 trials.

Run: python -m benchmarks.pages.opened --out benchmarks/results/pages
"""

import argparse
import json
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from typing import Any

import httpx2
from playwright.sync_api import Browser, Page

from api.auth import COOKIE
from benchmarks.pages.filled import add_jobs, add_running_job, more_trials, service_without_worker
from benchmarks.provenance import plain_command, record_folder
from db.engine import Database
from testbed.browser import chromium
from testbed.service import Service
from warpsmith.commit import commit_name

JOBS, TRIALS, TIMES = 5000, 10_000, 7
DRAWN = """() => new Promise((done) => {
  const look = () => document.querySelector('.trial-chart.drawn canvas')
    ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 5);
  look();
})"""
BYTES = """() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
  .filter((e) => !e.name.includes('/stream')).reduce((sum, e) => sum + e.transferSize, 0)"""


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=record_folder, required=True)
    asked = parser.parse_args()
    with service_without_worker() as (service, database):
        with database.write() as session:
            job_id, candidate_id = add_running_job(session, TRIALS)
        for _ in range(10):
            with database.write() as session:
                add_jobs(session, JOBS // 10)
        with chromium() as browser:
            record = measured(browser, service, database, job_id, candidate_id)
    record |= {
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plain_command("python -m " + "benchmarks.pages.opened " + " ".join(sys.argv[1:])),
        "cores": os.cpu_count(),
        "jobs": JOBS,
        "trials": TRIALS,
    }
    (asked.out / "opened.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))
    return 0


def measured(
    browser: Browser, service: Service, database: Database, job_id: str, candidate_id: str
) -> dict[str, Any]:
    """All figures; times are those of every run, s."""
    lists, jobs = [], []
    sizes: dict[str, int] = {}
    for _ in range(TIMES):
        page = opened(browser, service)
        page.goto("/")
        page.wait_for_selector("tr[data-job]")
        lists.append(page.evaluate("performance.now()") / 1000)
        sizes["bytes_of_jobs"] = page.evaluate(BYTES)
        page.goto(f"/jobs/{job_id}")
        jobs.append(page.evaluate(DRAWN) / 1000)
        page.context.close()
        page = opened(browser, service)
        page.goto(f"/jobs/{job_id}")
        page.evaluate(DRAWN)
        sizes["bytes_of_job"] = page.evaluate(BYTES)
        page.context.close()
    return {
        "list_of_jobs_s": summary(lists),
        "job_until_drawn_s": summary(jobs),
        **sizes,
        **answers(service, job_id),
        **updated(service, database, job_id, candidate_id),
    }


def opened(browser: Browser, service: Service) -> Page:
    """A page of a browser that has never been there; its key is in its cookie."""
    context = browser.new_context(base_url=service.url, viewport={"width": 1280, "height": 800})
    key = service.headers["Authorization"].removeprefix("Bearer ")
    context.add_cookies([{"name": COOKIE, "value": key, "url": service.url}])
    return context.new_page()


def answers(service: Service, job_id: str) -> dict[str, Any]:
    """Seconds of the service alone."""
    found = {}
    with httpx2.Client(base_url=service.url, headers=service.headers, timeout=60) as http:
        for name, path in (
            ("answer_list_s", "/"),
            ("answer_job_s", f"/jobs/{job_id}"),
            ("answer_points_s", f"/v1/jobs/{job_id}/points"),
        ):
            seconds = []
            for _ in range(TIMES):
                began_s = time.monotonic()
                assert http.get(path).status_code == 200
                seconds.append(time.monotonic() - began_s)
            found[name] = summary(seconds)
    return found


def updated(service: Service, database: Database, job_id: str, candidate_id: str) -> dict[str, int]:
    """Bytes that a page receives when three trials have ended: a status, and their points."""
    with httpx2.Client(base_url=service.url, headers=service.headers, timeout=60) as http:
        last = http.get(f"/v1/jobs/{job_id}/points").json()["next"]
        known = http.get(f"/v1/jobs/{job_id}/events").json()["items"][-1]["id"]
        with http.stream("GET", f"/v1/jobs/{job_id}/stream", params={"after": known}) as response:
            parts = response.iter_bytes()
            next(parts)
            next(parts)
            with database.write() as session:
                more_trials(session, job_id, candidate_id, TRIALS, 3)
            told = next(part for part in parts if b"event: status" in part)
        reply = http.get(
            f"/v1/jobs/{job_id}/points", params={"since": last}, headers={"Accept-Encoding": "gzip"}
        )
        return {
            "bytes_of_update_status": len(told),
            "bytes_of_update_points": int(reply.headers.get("content-length", len(reply.content))),
        }


def summary(seconds: list[float]) -> dict[str, float]:
    """Median and worst."""
    return {"median": round(statistics.median(seconds), 3), "worst": round(max(seconds), 3)}


if __name__ == "__main__":
    sys.exit(main())
