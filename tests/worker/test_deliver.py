"""Deliveries of webhooks to real receivers, on SQLite and Postgres."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from sqlalchemy import func, select, update

from db.engine import Database, utc_now
from db.event_cursor import Cursor
from db.message_names import DELIVER, WEBHOOK_QUEUE
from db.repositories.events import EventRepository
from db.repositories.jobs import JobRepository
from db.repositories.notifications.deliveries import (
    AT_ONCE,
    GIVE_UP_S,
    LEASE_S,
    DeliveryRepository,
)
from db.repositories.notifications.webhooks import WebhookRepository
from db.tables import OutboxRow, WebhookRow
from testbed.receivers import Received, Receiver, receiving
from tests.worker.test_execute import SilentNotifier
from warpsmith.errors import NotFound
from warpsmith.settings import Settings
from warpsmith.system.addresses import Allowed
from warpsmith.testing.jobs import scale_job
from warpsmith.webhooks import verify
from warpsmith.webhooks.models import Kind, NewWebhook
from warpsmith.webhooks.sending import WebhookSender
from worker import deliver as delivering
from worker.deliver import deliver
from worker.supervision.maintenance_loop import MaintenanceLoop

SENDER = WebhookSender(Allowed.of("127.0.0.1/32"))


def new_job(database: Database, tenant: str = "default") -> str:
    with database.write() as session:
        return JobRepository(session).create(scale_job(), tenant=tenant)[0].id


def tell(database: Database, job_id: str, *words: str, kind: str = "task") -> None:
    for word in words:
        with database.write() as session:
            EventRepository(session).add(job_id, kind, {"word": word, "none": None})


def hook(
    database: Database,
    receiver: Receiver | str,
    kinds: Sequence[Kind] = (),
    job: str | None = None,
    tenant: str = "default",
) -> WebhookRow:
    url = receiver if isinstance(receiver, str) else receiver.url
    with database.write() as session:
        wanted = NewWebhook(url=url, kinds=tuple(kinds), job=job)
        return WebhookRepository(session).create(wanted, tenant)


def row(database: Database, made: WebhookRow) -> WebhookRow:
    with database.read() as session:
        return WebhookRepository(session).get(made.id)


def change(database: Database, made: WebhookRow, **values: Any) -> None:
    with database.write() as session:
        session.execute(update(WebhookRow).where(WebhookRow.id == made.id).values(**values))


def due_now(database: Database, made: WebhookRow) -> None:
    """Let the pause after a failure pass."""
    change(database, made, next_attempt_at=utc_now() - timedelta(seconds=1))


def words(received: Sequence[Received]) -> list[str]:
    return [json.loads(r.body)["data"].get("word") for r in received]


def test_events_arrive_in_order_signed_once_and_only_from_now_on(database: Database) -> None:
    job_id = new_job(database)
    tell(database, job_id, "before")
    with receiving() as receiver:
        made = hook(database, receiver)
        tell(database, job_id, *"abcdef")
        assert deliver(database, SENDER, made.id)
        assert words(receiver.got) == list("abcdef")
        assert deliver(database, SENDER, made.id)
        tell(database, job_id, "g")
        deliver(database, SENDER, made.id)
    assert words(receiver.got) == list("abcdefg")
    first = receiver.got[0]
    body = json.loads(first.body)
    assert (body["job"], body["kind"], body["data"]) == (job_id, "task", {"word": "a", "none": None})
    assert set(body) == {"id", "job", "at", "kind", "data"}
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["Webhook-Id"].startswith(f"event_{body['id']}_")
    # Computed here without any code of the service.
    signed = f"{first.headers['Webhook-Id']}.{first.headers['Webhook-Timestamp']}.".encode() + first.body
    digest = hmac.new(base64.b64decode(made.secret.partition("_")[2]), signed, hashlib.sha256).digest()
    assert first.headers["Webhook-Signature"] == "v1," + base64.b64encode(digest).decode()
    assert abs(time.time() - int(first.headers["Webhook-Timestamp"])) < 300
    verify(made.secret, first.headers, first.body)
    assert (row(database, made).last_status, row(database, made).last_error) == (204, "")


def test_a_failure_keeps_the_order_and_the_id_and_waits_longer_each_time(database: Database) -> None:
    job_id = new_job(database)
    with receiving(204, 500, 503, 500) as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a", "b", "c")
        pauses = []
        for _ in range(3):
            assert deliver(database, SENDER, made.id)
            seen = row(database, made)
            assert seen.last_attempt_at is not None
            pauses.append((seen.next_attempt_at - seen.last_attempt_at).total_seconds())
            assert not deliver(database, SENDER, made.id), "it waits"
            due_now(database, made)
        assert (seen.failures, seen.last_status, seen.last_error) == (3, 500, "HTTP 500")
        assert deliver(database, SENDER, made.id)
    assert words(receiver.got) == ["a", "b", "b", "b", "b", "c"]
    ids = [r.headers["Webhook-Id"] for r in receiver.got]
    assert len(set(ids[1:5])) == 1
    assert len(set(ids)) == 3
    assert len({r.body for r in receiver.got[1:5]}) == 1
    for pause_s, wanted_s in zip(pauses, (5, 10, 20), strict=True):
        assert 0.7 * wanted_s < pause_s < 1.3 * wanted_s
    after = row(database, made)
    assert (after.failures, after.failing_since, after.last_error) == (0, None, "")


def test_the_longest_pause_is_an_hour(database: Database) -> None:
    job_id = new_job(database)
    with receiving(500) as receiver:
        made = hook(database, receiver)
        change(database, made, failures=500, failing_since=utc_now())
        tell(database, job_id, "a")
        deliver(database, SENDER, made.id)
    pause_s = (row(database, made).next_attempt_at - utc_now()).total_seconds()
    assert 2600 < pause_s < 4600


def test_gone_disables_at_once_and_enabling_goes_on_where_it_stopped(database: Database) -> None:
    job_id = new_job(database)
    with receiving(410) as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a", "b")
        deliver(database, SENDER, made.id)
        seen = row(database, made)
        assert (seen.disabled_at is not None, seen.disabled_reason) == (
            True,
            "the receiver answered 410 Gone",
        )
        due_now(database, made)
        assert not deliver(database, SENDER, made.id)
        with database.write() as session:
            WebhookRepository(session).enable(made.id)
        deliver(database, SENDER, made.id)
    assert words(receiver.got) == ["a", "a", "b"]
    assert row(database, made).disabled_at is None


def test_three_days_of_failures_disable(database: Database) -> None:
    job_id = new_job(database)
    with receiving(500, 500) as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a")
        deliver(database, SENDER, made.id)
        assert row(database, made).disabled_at is None
        due_now(database, made)
        change(database, made, failing_since=utc_now() - timedelta(seconds=GIVE_UP_S + 1))
        deliver(database, SENDER, made.id)
    seen = row(database, made)
    assert seen.disabled_at is not None
    assert seen.disabled_reason == "no attempt has succeeded for 3 days; the last one: HTTP 500"


def test_kinds_and_jobs_that_are_not_wanted_are_passed_by(database: Database) -> None:
    job_id, other = new_job(database), new_job(database)
    with receiving() as all_settled, receiving() as one:
        hooks = hook(database, all_settled, ["settled"]), hook(database, one, job=other)
        tell(database, job_id, *map(str, range(60)))
        tell(database, job_id, "s", kind="settled")
        tell(database, other, "t")
        for made in hooks:
            assert deliver(database, SENDER, made.id)
    assert words(all_settled.got) == ["s"]
    assert words(one.got) == ["t"]
    with database.read() as session:
        assert DeliveryRepository(session).due() == [], "what is not wanted does not keep it busy"


def test_the_last_event_of_a_job_brings_its_status_and_ends_its_webhook(database: Database) -> None:
    job_id = new_job(database)
    with receiving() as receiver, receiving() as another:
        made, lasting = hook(database, receiver, ["state"], job=job_id), hook(database, another)
        tell(database, job_id, "a")
        with database.write() as session:
            JobRepository(session).cancel(job_id)
        for one in (made, lasting):
            deliver(database, SENDER, one.id)
    for got in (receiver.got, another.got):
        body = json.loads(got[-1].body)
        assert (body["kind"], body["data"]["state"]) == ("state", "cancelled")
        assert (body["status"]["id"], body["status"]["state"]) == (job_id, "cancelled")
    assert row(database, lasting).disabled_at is None
    with pytest.raises(NotFound):
        row(database, made)


def test_nothing_of_another_tenant_is_sent(database: Database) -> None:
    ours, theirs = new_job(database, "a"), new_job(database, "b")
    with receiving() as at_a, receiving() as at_b:
        hooks = hook(database, at_a, tenant="a"), hook(database, at_b, tenant="b")
        strange = hook(database, at_b, job=ours, tenant="b")
        for turn in range(3):
            tell(database, ours, f"ours {turn}")
            tell(database, theirs, f"theirs {turn}")
        for made in (*hooks, strange):
            deliver(database, SENDER, made.id)
    assert words(at_a.got) == ["ours 0", "ours 1", "ours 2"]
    assert words(at_b.got) == ["theirs 0", "theirs 1", "theirs 2"]


def test_two_deliverers_never_send_at_the_same_time(database: Database) -> None:
    job_id = new_job(database)

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.02)
        handler.send_response(204)
        handler.end_headers()

    with receiving(*[slowly] * 20) as receiver, ThreadPoolExecutor(4) as threads:
        made = hook(database, receiver)
        tell(database, job_id, *map(str, range(20)))
        done = list(threads.map(lambda _: deliver(database, SENDER, made.id), range(4)))
    assert done.count(True) >= 1
    assert receiver.at_once == 1
    assert words(receiver.got) == [str(n) for n in range(20)]


def test_a_crash_between_the_reply_and_the_commit_sends_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = new_job(database)

    class Crash(BaseException):
        pass

    def crash(*_: Any) -> None:
        raise Crash

    with receiving() as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a", "b")
        with monkeypatch.context() as patched, pytest.raises(Crash):
            patched.setattr(DeliveryRepository, "took", crash)
            deliver(database, SENDER, made.id)
        assert not deliver(database, SENDER, made.id), "its lease lasts"
        with database.read() as session:
            assert DeliveryRepository(session).due() == []
        change(database, made, leased_until=utc_now() - timedelta(seconds=1))
        with database.read() as session:
            assert [i for i, _ in DeliveryRepository(session).due()] == [made.id]
        assert deliver(database, SENDER, made.id)
    assert words(receiver.got) == ["a", "a", "b"]
    assert receiver.got[0].headers["Webhook-Id"] == receiver.got[1].headers["Webhook-Id"]


def test_a_turn_ends_in_time_and_others_come_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "SLICE_S", 0.2)
    job_id = new_job(database)

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.1)
        handler.send_response(204)
        handler.end_headers()

    with receiving(*[slowly] * 50) as slow, receiving() as quick:
        first, second = hook(database, slow), hook(database, quick)
        tell(database, job_id, *map(str, range(50)))
        deliver(database, SENDER, first.id)
        assert 1 <= len(slow.got) < 10
        with database.read() as session:
            assert [i for i, _ in DeliveryRepository(session).due()] == [second.id, first.id]
        deliver(database, SENDER, first.id)
    assert words(slow.got) == [str(n) for n in range(len(slow.got))], "it went on where it had stopped"
    assert delivering.SLICE_S + SENDER.timeout_s < LEASE_S


def test_a_private_receiver_is_refused_at_delivery(database: Database) -> None:
    job_id = new_job(database)
    with receiving() as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a")
        deliver(database, WebhookSender(Allowed()), made.id)
    seen = row(database, made)
    assert receiver.got == []
    assert (seen.last_status, seen.failures) == (None, 1)
    assert "the URL was refused" in seen.last_error


def test_a_deleted_webhook_gets_nothing_more(database: Database) -> None:
    job_id = new_job(database)
    with receiving() as receiver:
        made = hook(database, receiver)

        def delete(handler: BaseHTTPRequestHandler) -> None:
            with database.write() as session:
                WebhookRepository(session).delete(made.id)
            handler.send_response(204)
            handler.end_headers()

        receiver.answers.append(delete)
        tell(database, job_id, "a", "b")
        assert deliver(database, SENDER, made.id)
        assert not deliver(database, SENDER, made.id)
    assert words(receiver.got) == ["a"]


def test_a_ping_says_whether_a_receiver_answers_also_when_it_is_disabled(database: Database) -> None:
    job_id = new_job(database)
    with receiving(410, 500, 204) as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a")
        deliver(database, SENDER, made.id)
        for status in (500, 204):
            with database.write() as session:
                WebhookRepository(session).ping(made.id)
            assert deliver(database, SENDER, made.id)
            seen = row(database, made)
            assert (seen.ping, seen.last_status, seen.failures) == (False, status, 1)
    assert seen.disabled_at is not None
    pings = receiver.got[1:]
    assert [json.loads(p.body)["kind"] for p in pings] == ["ping", "ping"]
    assert len({p.headers["Webhook-Id"] for p in pings}) == 2
    verify(made.secret, pings[0].headers, pings[0].body)


def test_a_ping_that_arrives_ends_the_pause(database: Database) -> None:
    job_id = new_job(database)
    with receiving(500) as receiver:
        made = hook(database, receiver)
        tell(database, job_id, "a")
        deliver(database, SENDER, made.id)
        assert not deliver(database, SENDER, made.id)
        with database.write() as session:
            WebhookRepository(session).ping(made.id)
        deliver(database, SENDER, made.id)
        deliver(database, SENDER, made.id)
    assert [json.loads(r.body)["kind"] for r in receiver.got] == ["task", "ping", "task"]


def notified(database: Database) -> list[str]:
    with database.read() as session:
        query = select(OutboxRow).where(OutboxRow.name == DELIVER).order_by(OutboxRow.id)
        rows = session.scalars(query).all()
        assert all(r.queue == WEBHOOK_QUEUE for r in rows)
        return [r.subject for r in rows]


def test_the_maintenance_loop_sends_what_is_due_once(database: Database) -> None:
    loop = MaintenanceLoop(Settings(_env_file=None), database, SilentNotifier(), "me")
    job_id = new_job(database)
    loop.notify_webhooks()
    assert not loop.has_webhooks
    made, idle = hook(database, "http://127.0.0.1:9/"), hook(database, "http://127.0.0.1:9/", tenant="b")
    loop.notify_webhooks()
    assert (loop.has_webhooks, notified(database)) == (True, [])
    tell(database, job_id, "a")
    loop.notify_webhooks()
    loop.notify_webhooks()
    assert notified(database) == [made.id]
    change(database, made, notified_at=utc_now() - timedelta(seconds=11))
    loop.notify_webhooks()
    assert notified(database) == [made.id, made.id], "a lost message is sent again"
    assert idle.id not in notified(database)


def test_one_tenant_has_few_deliveries_at_a_time(database: Database) -> None:
    jobs = {tenant: new_job(database, tenant) for tenant in ("a", "b")}
    for tenant, count in (("a", 2 * AT_ONCE), ("b", 1)):
        for _ in range(count):
            hook(database, "http://127.0.0.1:9/", tenant=tenant)
        tell(database, jobs[tenant], "x")
    for _ in range(2):
        with database.write() as session:
            DeliveryRepository(session).notify_due()
        with database.read() as session:
            query = select(WebhookRow.tenant, func.count()).where(WebhookRow.notified_at.is_not(None))
            found = Counter(dict(session.execute(query.group_by(WebhookRow.tenant)).all()))
        assert found == {"a": AT_ONCE, "b": 1}


def test_an_idle_webhook_moves_on_and_misses_nothing(database: Database) -> None:
    busy, idle = new_job(database, "a"), new_job(database, "b")
    waiting = hook(database, "http://127.0.0.1:9/", tenant="a")
    made = hook(database, "http://127.0.0.1:9/", tenant="b")
    tell(database, busy, *"abc")
    with database.write() as session:
        DeliveryRepository(session).catch_up()
    with database.read() as session:
        end = EventRepository(session).end()
        (_, _, last) = EventRepository(session).after(Cursor(made.cursor_xact, made.cursor_id), 9)
    seen = row(database, made)
    assert Cursor(seen.cursor_xact, seen.cursor_id) == end == Cursor(last.xact, last.id)
    assert row(database, waiting).cursor_id == waiting.cursor_id, "it has not got these"
    tell(database, idle, "mine")
    with database.read() as session:
        assert {i for i, _ in DeliveryRepository(session).due()} == {waiting.id, made.id}


def test_a_restored_dump_of_another_server_goes_on(migrated_postgres: str) -> None:
    database = Database(migrated_postgres)
    job_id = new_job(database)
    with receiving() as receiver:
        made = hook(database, receiver)
        # As a server would have written it that had counted further.
        change(database, made, cursor_xact=2**60)
        tell(database, job_id, "a")
        deliver(database, SENDER, made.id)
        assert receiver.got == []
        with database.write() as session:
            DeliveryRepository(session).go_on_after_restore()
        deliver(database, SENDER, made.id)
    assert words(receiver.got)[-1] == "a"
    database.dispose()


def test_a_job_takes_its_webhooks_along(database: Database) -> None:
    job_id = new_job(database)
    made = hook(database, "http://127.0.0.1:9/", job=job_id)
    with database.write() as session:
        session.delete(JobRepository(session).get(job_id))
    with pytest.raises(NotFound):
        row(database, made)


def test_events_that_commit_late_are_neither_missed_nor_sent_twice(database: Database) -> None:
    job_id = new_job(database)
    stop = threading.Event()
    with receiving() as receiver:
        made = hook(database, receiver)

        def go_on() -> None:
            while not stop.is_set():
                deliver(database, SENDER, made.id)

        thread = threading.Thread(target=go_on)
        thread.start()

        def write(name: str) -> None:
            for n in range(10):
                with database.write() as session:
                    EventRepository(session).add(job_id, "task", {"word": f"{name}{n}"})
                    session.flush()
                    time.sleep(0.002)

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(write, "xyz"))
        stop.set()
        thread.join()
        deliver(database, SENDER, made.id)
    got = words(receiver.got)
    assert sorted(got) == sorted(f"{name}{n}" for name in "xyz" for n in range(10))
    for name in "xyz":
        assert [w for w in got if w[0] == name] == [f"{name}{n}" for n in range(10)]
