"""What the address of a server must be like. Pure."""

import ipaddress
from urllib.parse import urlsplit

_NEAR = (".local", ".lan", ".internal", ".localhost", ".home.arpa", ".ts.net")
# RFC 6598. Private networks over the Internet use it, Tailscale first of all; those encrypt by themselves.
_OVERLAY = ipaddress.ip_network("100.64.0.0/10")


def fault(base_url: str) -> str | None:
    """What is wrong with an address, as the end of a sentence about it, which does not repeat it: it may hold a key."""
    try:
        address = urlsplit(base_url)
        port = address.port
    except ValueError:
        return "is no address of a server"
    if address.scheme not in {"http", "https"}:
        return "must begin with http:// or https://"
    if address.username is not None or address.password is not None:
        return "must hold no user or password: a key belongs into api_key, api_key_env or api_key_file"
    if "?" in base_url or "#" in base_url:
        return "must end before any ? or #: a key belongs into api_key, api_key_env or api_key_file"
    if not address.hostname or port == 0 or not base_url.isascii() or not base_url.isprintable():
        return "names no server"
    if " " in base_url or "\\" in base_url:
        return "has signs in it that no address has"
    return None


def is_readable(base_url: str) -> bool:
    """Whether what is sent to an address that has no fault can be read on the way, by others than this network's."""
    return urlsplit(base_url).scheme == "http" and not is_near(base_url)


def is_near(base_url: str) -> bool:
    """Whether the host of a valid address is on this machine or in the local network, judged by its name alone."""
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_NEAR)
    return address.is_private or address.is_loopback or address.is_link_local or address in _OVERLAY
