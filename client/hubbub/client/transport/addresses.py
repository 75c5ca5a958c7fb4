"""Chooses the transport for an address by the address's scheme.

Each protocol's module is imported when it is dialled, by a literal import statement: tools that
freeze an app into one file (PyInstaller) find only those.
"""

import os
from functools import partial

from hubbub.client.settings import TRANSPORTS
from hubbub.client.transport.contract import Transport
from hubbub.client.transport.lazy_transport import LazyTransport
from hubbub.errors import BadParameter
from hubbub.errors.addresses import relay_place, shuffler_parts
from hubbub.errors.message_words import install_with, is_installed


def _grpc(place: str, roots: str | None, *, insecure: bool) -> Transport:
    # gRPC reads it as it is loaded. Without it, it writes into the app's standard error whenever a
    # handshake fails or a server ends an idle connection.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from hubbub.client.transport.grpc_connection import GrpcConnection  # noqa: PLC0415 as above

    return GrpcConnection(place, roots, insecure=insecure)


def _http(place: str, roots: str | None, *, insecure: bool) -> Transport:
    from hubbub.client.transport.http_connection import HttpConnection  # noqa: PLC0415 as above

    return HttpConnection(place, roots, insecure=insecure)


def transport_to(
    address: str, *, roots: str | None, insecure: bool = False, transport: str | None = None
) -> Transport:
    """Returns a transport to a shuffler, over TLS, or unencrypted to this machine only.

    The transport uses a proxy that the environment names (https_proxy, no_proxy).

    Args:
        address: HOST:PORT, as in bundles; https://HOST:PORT for HTTP; http://HOST:PORT is
            unencrypted, to this machine only.
        roots: PEM of the trusted certificate authorities; None for the system's.
        insecure: unencrypted, to this machine only.
        transport: "grpc" or "http", for an address without a scheme; None for gRPC if grpcio is
            installed, else HTTP.

    Raises:
        BadParameter: insecure to another machine; an invalid address; or an unsupported scheme.
    """
    scheme, place = shuffler_parts(address, insecure=insecure)
    if not scheme and transport not in {None, *TRANSPORTS}:
        raise BadParameter(f"transport {transport!a} is not one of {', '.join(TRANSPORTS)}")
    insecure = insecure or scheme == "http"
    if transport is None:
        transport = "grpc" if is_installed("grpc") else "http"
    over_grpc = not scheme and transport == "grpc"
    dial = partial(_grpc if over_grpc else _http, place, roots, insecure=insecure)
    return LazyTransport(dial, bears_forks=not over_grpc)


def relay_to(relay: str, *, gateway: bytes, shuffler: str, roots: str | None) -> Transport:
    """Returns a transport through an Oblivious HTTP relay, which sees senders but no content.

    Args:
        relay: https://HOST:PORT, and the path for requests.
        gateway: the gateway's public key, from the bundle.
        shuffler: address of the shuffler, inside the encrypted request.
        roots: PEM of authorities that are trusted in addition to the system's.

    Raises BadParameter: an invalid address, no key in the bundle, or pyhpke is not installed.
    """
    place = relay_place(relay)
    if not gateway:
        raise BadParameter(
            "relay needs a gateway key, which the bundle lacks; make one with: hubbub "
            "keys gateway FOLDER, and build the bundle"
        )
    if not is_installed("pyhpke"):
        raise BadParameter(f"relay needs pyhpke: {install_with('relay')}")

    def dial() -> Transport:
        from hubbub.client.transport.relay_connection import RelayConnection  # noqa: PLC0415 as above

        return RelayConnection(place, gateway, shuffler.rpartition("://")[2], roots)

    return LazyTransport(dial, bears_forks=True)
