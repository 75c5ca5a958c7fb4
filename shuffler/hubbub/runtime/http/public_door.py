"""The HTTP server of a service that any device may call and that stores no report."""

from collections import Counter
from typing import Final

from hubbub.runtime.http.connections import OpenConnections
from hubbub.runtime.http.server import App, HttpDoor
from hubbub.runtime.monitoring.metrics import Law
from hubbub.runtime.tls import TlsFolder

_CONNECTIONS: Final = 4096
_OF_ADDRESS: Final = 64


def public_door(
    listen: str, app: App, *, tls: TlsFolder | None, proxies: tuple[str, ...]
) -> HttpDoor:
    """Makes a server that limits connections in all and per address. `tls` is None on loopback."""
    connections = OpenConnections(proxies, Counter(), most=_CONNECTIONS, of_address=_OF_ADDRESS)
    return HttpDoor(listen, app, tls=tls, connections=connections, proxies=proxies)


def open_to_pages(headers: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """CORS headers that let pages of any origin send POST requests with these request headers."""
    return (
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", headers),
        (b"access-control-expose-headers", b"retry-after"),
        (b"access-control-max-age", b"86400"),
    )


async def no_terms() -> Law:
    """The empty conservation law of a service that stores no reports."""
    return {}
