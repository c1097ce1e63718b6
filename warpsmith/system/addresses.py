"""Addresses to which webhooks may be sent: the public internet, and what the operator allows."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Written out, because the standard library's own lists differ between versions of Python.
NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carriers' address translation, and some clouds' metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's platform, as its virtual machines see it
        "169.254.0.0/16",  # link-local, and clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
GLOBAL_6 = IPv6Network("2000::/3")
"""All public IPv6 addresses. Those that hold an IPv4 address in another range (mapped, compatible, NAT64) are
outside."""
NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which holds an IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def is_public(address: Address) -> bool:
    """True if everybody on the internet may send to the address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_4)
    return address in GLOBAL_6 and not any(address in network for network in NOT_PUBLIC_6)


@dataclass(frozen=True)
class Allowed:
    """Networks and host names that an operator allows beside the public internet."""

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> "Allowed":
        """Read a setting: networks (`10.1.0.0/16`), addresses and names of hosts, separated by commas.

        Raises:
            ValueError: a part is none of these; the message names it.
        """
        networks, names = [], set()
        for part in filter(None, (p.strip().lower() for p in text.split(","))):
            try:
                networks.append(ip_network(part))
            except ValueError as exc:
                if _NAME.fullmatch(part) is None or part.replace(".", "").isdigit():
                    raise ValueError(f"{part!r} is neither a network nor the name of a host: {exc}") from exc
                names.add(part)
        return cls(tuple(networks), frozenset(names))

    def permits(self, host: str, address: str) -> bool:
        """True if a message for a host may be sent to one of its addresses."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if host.lower() in self.names or any(found in network for network in self.networks):
            return True
        return is_public(found)
