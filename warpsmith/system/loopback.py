"""Addresses that only this machine can reach."""

import ipaddress


def is_loopback(host: str) -> bool:
    """True for names and addresses that only this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
