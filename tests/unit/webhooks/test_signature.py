"""Signatures against the example of the specification, and what a receiver refuses."""

import time

import pytest

from warpsmith.errors import InvalidInput
from warpsmith.webhooks import verify
from warpsmith.webhooks.signature import new_secret, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_example_that_libraries_of_the_specification_test() -> None:
    body = b'{"test": 2432232314}'
    made = signed_headers(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert made["Webhook-Signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_accepts_what_is_whole_and_fresh() -> None:
    secret, body = new_secret(), b'{"a":1}'
    made = signed_headers(secret, "event_1", int(time.time()), body)
    verify(secret, made, body)
    verify(secret, {k.upper(): v for k, v in made.items()}, body)
    both = made | {"Webhook-Signature": f"v1,AAAA {made['Webhook-Signature']}"}
    verify(secret, both, body)


@pytest.mark.parametrize(
    ("changes", "body", "field"),
    [
        ({}, b"{}", "webhook-signature"),
        ({"Webhook-Id": "event_2"}, b'{"a":1}', "webhook-signature"),
        ({"Webhook-Signature": "v1,ä"}, b'{"a":1}', "webhook-signature"),
        ({"Webhook-Signature": ""}, b'{"a":1}', "webhook-signature"),
        ({"Webhook-Timestamp": "1"}, b'{"a":1}', "webhook-timestamp"),
        ({"Webhook-Timestamp": "now"}, b'{"a":1}', "webhook-timestamp"),
        ({"Webhook-Id": ""}, b'{"a":1}', "webhook-id"),
    ],
)
def test_a_receiver_refuses_the_rest(changes: dict[str, str], body: bytes, field: str) -> None:
    secret = new_secret()
    made = signed_headers(secret, "event_1", int(time.time()), b'{"a":1}') | changes
    with pytest.raises(InvalidInput) as refused:
        verify(secret, made, body)
    assert refused.value.field == field


def test_what_was_sent_long_ago_is_refused_however_well_signed() -> None:
    made = signed_headers(SECRET, "event_1", int(time.time()) - 1000, b"")
    with pytest.raises(InvalidInput, match="clock"):
        verify(SECRET, made, b"")
    verify(SECRET, made, b"", tolerance_s=2000)


def test_no_secret_is_told_so() -> None:
    with pytest.raises(InvalidInput, match="whsec_"):
        verify("whsec_!", signed_headers(SECRET, "event_1", int(time.time()), b""), b"")
