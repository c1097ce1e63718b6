"""Where webhooks may be sent."""

from ipaddress import ip_address, ip_network

import pytest

from warpsmith.errors import InvalidInput
from warpsmith.settings import Settings
from warpsmith.system.addresses import Allowed, is_public
from warpsmith.webhooks.sending import WebhookSender
from warpsmith.webhooks.target import NOT_REACHED, parse_target

PRIVATE_HOSTS = (
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.000.000.001",
    "localhost",
    "LOCALHOST",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "10.255.255.255",
    "167772161",  # 10.0.0.1
    "0xa.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "3232235777",  # 192.168.1.1
    "169.254.169.254",
    "0xa9fea9fe",  # 169.254.169.254
    "2852039166",  # 169.254.169.254
    "0251.0376.0251.0376",  # 169.254.169.254
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.170",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:8.8.8.8]",
    "[::127.0.0.1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[5f00::1]",
)
NOT_URLS = (
    ("ftp://example.com/", "https or http"),
    ("example.com/hook", "https or http"),
    ("http://", "https or http"),
    ("//example.com/", "https or http"),
    ("file:///etc/passwd", "https or http"),
    ("http://user:password@example.com/", "no user and password"),
    ("http://user@example.com/", "no user and password"),
    ("http://example.com@127.0.0.1/", "no user and password"),
    ("http://example.com/#there", "no fragment"),
    ("http://example.com:22/", "port 22"),
    ("http://example.com:25/", "port 25"),
    ("http://example.com:0/", "port 0"),
    ("http://example.com:99999/", "https or http|port 99999"),
    ("http://example.com\\@127.0.0.1/", "backslashes"),
    ("http://①②⑦.⓪.⓪.①/", "ASCII"),
    ("http://exa mple.com/", "spaces"),
    ("http://example.com/\r\nX: y", "spaces"),
    ("http://[fe80::1%25eth0]/", "https or http"),
)


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
def test_a_host_that_is_not_public_is_refused(host: str) -> None:
    """As the system itself reads them, whatever their spelling."""
    for scheme in ("http", "https"):
        with pytest.raises(InvalidInput) as refused:
            WebhookSender(Allowed()).check(f"{scheme}://{host}/hook", 60)
        assert (refused.value.field, refused.value.message) == ("url", NOT_REACHED)
    assert WebhookSender(Allowed()).post(f"http://{host}:8080/", {}, b"").status is None


@pytest.mark.parametrize(("url", "words"), NOT_URLS)
def test_what_is_no_url_of_a_webhook(url: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_target(url)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111"])
def test_public_addresses(address: str) -> None:
    assert is_public(ip_address(address))
    WebhookSender(Allowed(), lambda host, port: [address]).check("https://example.com/", 60)


def test_one_bad_address_among_good_ones_refuses_all() -> None:
    sender = WebhookSender(Allowed(), lambda host, port: ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(InvalidInput, match="not on the public internet"):
        sender.check("https://example.com/", 60)


def test_a_name_that_does_not_exist_is_told_as_one_that_is_private() -> None:
    def nowhere(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(InvalidInput) as refused:
        WebhookSender(Allowed(), nowhere).check("https://example.com/", 60)
    assert refused.value.message == NOT_REACHED


def test_an_operator_allows_networks_addresses_and_names() -> None:
    allowed = Allowed.of("10.1.0.0/16, 127.0.0.1,Hooks.internal,fd00::/8")
    assert allowed.networks == (*map(ip_network, ("10.1.0.0/16", "127.0.0.1/32", "fd00::/8")),)
    assert allowed.permits("any.example", "10.1.2.3")
    assert allowed.permits("HOOKS.internal", "192.168.0.9")
    assert allowed.permits("any.example", "fd00::7")
    assert not allowed.permits("other.internal", "192.168.0.9")
    assert not allowed.permits("any.example", "10.2.0.1")
    assert not allowed.permits("any.example", "::ffff:127.0.0.1")


@pytest.mark.parametrize("text", ["10.0.0.1/8", "300.1.1.1", "http://x", "a b", "-x", "10.0.0.0/40"])
def test_a_setting_that_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither a network nor the name of a host"):
        Settings(_env_file=None, webhook_private=text)
