"""Which transport goes to an address: decided here alone, by the address's scheme."""

import ipaddress
from functools import partial
from importlib import import_module
from typing import Final, NamedTuple

from hubbub.client.transport.contract import Transport
from hubbub.client.transport.dialled import Connection, DialledTransport
from hubbub.errors import BadParameter

__all__ = ["transport_to"]


class _Protocol(NamedTuple):
    """Where a protocol's `Connection` is, loaded when it is dialled; and whether it bears forks."""

    module: str
    connection: str
    bears_forks: bool


# One line each. No scheme is HOST:PORT, gRPC.
_PROTOCOLS: Final = {
    "": _Protocol("grpc_connection", "GrpcConnection", bears_forks=False),
}


def transport_to(address: str, *, roots: str | None, insecure: bool = False) -> Transport:
    """The way to a shuffler: over TLS, or in the clear (`insecure`) to this machine alone.

    A proxy named by the environment (https_proxy, no_proxy) is used.

    Args:
        address: HOST:PORT, as bundles have it.
        roots: PEM of the certificates to chain to; None for the system's.
        insecure: in the clear, to this machine alone.

    Raises:
        BadParameter: insecure, and another machine; or no protocol goes there.
    """
    scheme, _, place = address.rpartition("://")
    protocol = _PROTOCOLS.get(scheme)
    if protocol is None:
        raise BadParameter(f"no way is known to a shuffler at {scheme}://; write HOST:PORT")
    if insecure and not _is_loopback(place):
        raise BadParameter(
            f"{address} is not on this machine: insecure is for loopback alone; use TLS"
        )
    dial = partial(_dial, protocol, place, roots, insecure=insecure)
    return DialledTransport(dial, bears_forks=protocol.bears_forks)


def _dial(protocol: _Protocol, place: str, roots: str | None, *, insecure: bool) -> Connection:
    module = import_module(f"{__package__}.{protocol.module}")
    connection: Connection = getattr(module, protocol.connection)(place, roots, insecure=insecure)
    return connection


def _is_loopback(place: str) -> bool:
    host = place.rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
