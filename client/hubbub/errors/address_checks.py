"""Checks addresses that people give before anything connects to them or listens there.

gRPC and urllib take a port modulo 65,536, and would use another service than was meant.
"""

import os
import re
import sys
from typing import Final
from urllib.parse import SplitResult, urlsplit

from hubbub.errors import BadParameter

# A host has none of the code points that https://url.spec.whatwg.org forbids in hosts.
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^\s#/:<>?@\[\\\]^|%]+)"
_ADDRESS: Final = _HOST + r":([0-9]{1,5})"
_PLACE: Final = _HOST + r"(?::[0-9]*)?"
_SCHEME_OF_PROXY: Final = r"(?:https?|socks[45]?[ah]?):(?![0-9]*$)"
_PRINTABLE: Final = r"[!-~]+"
_SCHEME: Final = r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//"
LAST_PORT: Final = 65_535


def has_port(address: str, *, first: int = 0) -> bool:
    """Whether it is HOST:PORT with a port that is valid and not below `first`."""
    match = re.fullmatch(_ADDRESS, address) if address.isprintable() else None
    return match is not None and first <= int(match[1]) <= LAST_PORT


def check_address(subject: str, address: str, *, first: int = 1) -> None:
    """Raises BadParameter unless the address is HOST:PORT; `subject` is the name of its option.

    first: the lowest port: nobody can dial 0, which for a listener means any that is free.
    """
    if not has_port(address, first=first):
        raise BadParameter(
            f"{subject} {address!a} is not an address; write HOST:PORT, with a port in "
            f"[{first}, {LAST_PORT}]"
        )


def shuffler_parts(address: str, *, insecure: bool = False) -> tuple[str, str]:
    """Returns the scheme of a shuffler's address, "" for none, and the address without it.

    Raises BadParameter for an invalid address; and for one of another machine, if its scheme or
    `insecure` is unencrypted.
    """
    scheme, _, place = address.rpartition("://")
    subject = f"shuffler {shown_url(address)}"
    if scheme not in {"", "https", "http"}:
        raise BadParameter(
            f"{subject}: {scheme}:// is not supported; write HOST:PORT or https://HOST:PORT"
        )
    if not (_is_place(place) if scheme else has_port(place, first=1)):
        raise BadParameter(
            f"{subject} is not an address; write HOST:PORT or https://HOST:PORT, with a port in "
            f"[1, {LAST_PORT}]"
        )
    if (insecure or scheme == "http") and not is_loopback(place.partition("/")[0]):
        raise BadParameter(
            f"{subject} is not on this machine: insecure is only for loopback; use TLS"
        )
    return scheme, place


def relay_place(relay: str) -> str:
    """Returns the address of a relay without its scheme. Raises BadParameter."""
    scheme, _, place = relay.rpartition("://")
    if scheme != "https" or not _is_place(place):
        raise BadParameter(f"relay {shown_url(relay)} is not an address; write https://HOST:PORT")
    return place


def _is_place(place: str) -> bool:
    """Returns whether `place` is HOST or HOST:PORT, with or without a path."""
    parts = url_parts(f"//{place}")
    return parts is not None and not ("@" in parts.netloc or parts.query or parts.fragment)


def is_loopback(address: str) -> bool:
    """Whether HOST:PORT is on this machine and nowhere else."""
    return is_local(address.rsplit(":", 1)[0].strip("[]"))


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    import ipaddress  # noqa: PLC0415 of who dials alone

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def proxy_to(host: str) -> str | None:
    """The proxy for TLS to a host: None for none, "" if bypassed, as for this machine always."""
    if is_local(host):
        return ""
    # Linux has no proxies but the environment's. The module below loads mails and archives (3 MB).
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 as above

    if proxy_bypass(host):
        return ""
    return getproxies().get("https")


def proxy_parts(proxy: str) -> SplitResult:
    """The parts of a proxy's address. Raises BadParameter unless it is of an http proxy."""
    proxy = proxy.strip()
    is_mistyped = "://" not in proxy and re.match(_SCHEME_OF_PROXY, proxy)
    parts = None if is_mistyped else url_parts(proxy if "://" in proxy else f"http://{proxy}")
    # A proxy of another kind would get the tunnel's request, with its password, unencrypted.
    if parts is None or parts.scheme != "http":
        raise BadParameter(f"https_proxy {shown_url(proxy)} is not supported; use http://HOST:PORT")
    return parts


def proxy_options(address: str) -> tuple[tuple[str, str | int], ...]:
    """Options that make a gRPC channel to HOST:PORT use its proxy. Raises as `proxy_parts`."""
    proxy = proxy_to(address.rpartition(":")[0].strip("[]"))
    if proxy is None:
        return ()  # gRPC knows variables of its own
    if not proxy:
        return (("grpc.enable_http_proxy", 0),)
    return (("grpc.http_proxy", proxy_parts(proxy).geturl()),)


def server_parts(url: str) -> SplitResult | None:
    """The parts of a URL for HTTP; None for other text or a password in it, as logs quote URLs."""
    parts = url_parts(url) if re.fullmatch(_PRINTABLE, url) else None
    if parts is None or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        return None
    return parts


def shown_url(url: str) -> str:
    """The URL, quoted, without what may be secret: user name, password and query."""
    scheme = match[0] if (match := re.match(_SCHEME, url)) else ""
    _, at, place = url[len(scheme) :].rpartition("@")
    return ascii(f"{scheme}{at and '...@'}{place.partition('?')[0]}")


def secure_parts(url: str) -> SplitResult | None:
    """The parts of an https URL, or of one of http on this machine; None for other text."""
    parts = url_parts(url)
    if parts is None or parts.scheme == "https":
        return parts
    return parts if parts.scheme == "http" and is_local(parts.hostname or "") else None


def url_parts(url: str) -> SplitResult | None:
    """The parts of a URL with a host and a valid port; None for other text."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    has_host = url.isprintable() and re.fullmatch(_PLACE, parts.netloc.rpartition("@")[2])
    return parts if has_host and port != 0 else None
