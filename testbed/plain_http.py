"""Requests to servers of this machine, which speak no TLS."""

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For `verify` of a client: trusts nobody, while reading whom to trust takes 40 ms of each new client."""
