"""Signatures of webhooks, as the Standard Webhooks specification has them."""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping

from warpsmith.errors import InvalidInput

PREFIX = "whsec_"
SECRET_BYTES = 32
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
TOLERANCE_S = 300.0
"""Longest age in seconds of a message that a receiver accepts."""


def new_secret() -> str:
    """A fresh secret: `whsec_`, then the key in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(secret: str, message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The three headers of a signed message.

    Args:
        message_id: id of the message, without a dot; repeated attempts carry the same.
        at_s: time of the attempt in seconds since 1970.
    """
    return {
        "Webhook-Id": message_id,
        "Webhook-Timestamp": str(at_s),
        "Webhook-Signature": _signature(secret, message_id, str(at_s), body),
    }


def verify(secret: str, headers: Mapping[str, str], body: bytes, *, tolerance_s: float = TOLERANCE_S) -> None:
    """Check that a message comes from the service and is fresh; for programs that receive webhooks.

    Args:
        secret: what the service gave when the webhook was made (`whsec_...`).
        headers: headers of the request, in any case.
        body: the body as it arrived, byte for byte.
        tolerance_s: longest accepted difference in seconds between the clocks.

    Raises:
        InvalidInput: a header is missing, the message is old, or its signature is wrong.
    """
    given = {name.lower(): value for name, value in headers.items()}
    for name in (ID, TIMESTAMP, SIGNATURE):
        if not given.get(name):
            raise InvalidInput(name, "is missing: this is no message of a webhook")
    at = given[TIMESTAMP]
    if not (at.isascii() and at.isdigit()) or abs(time.time() - int(at)) > tolerance_s:
        raise InvalidInput(TIMESTAMP, f"is not within {tolerance_s:g} s of this machine's clock")
    wanted = _signature(secret, given[ID], at, body).encode()
    # One secret may follow another: each signature in the header counts.
    if not any(hmac.compare_digest(one.encode(), wanted) for one in given[SIGNATURE].split()):
        raise InvalidInput(SIGNATURE, "does not fit the body and this secret")


def _signature(secret: str, message_id: str, at: str, body: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise InvalidInput("secret", "must be as the service gave it: whsec_ and base64") from exc
    signed = hmac.new(key, f"{message_id}.{at}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(signed.digest()).decode()
