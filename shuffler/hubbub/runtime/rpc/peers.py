"""Peers: who calls, as gRPC names them."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hubbub.runtime.rpc.limiter import network

if TYPE_CHECKING:
    import grpc.aio


def caller_of(context: "grpc.aio.ServicerContext[Any, Any]") -> str:
    """What limits know whoever makes this call by."""
    return network(address_of(context.peer()))


def address_of(peer: str) -> str:
    """Of "ipv4:1.2.3.4:567" or "ipv6:%5B::1%5D:567" the address.

    Of a Unix socket, say, its kind: all of them are one.
    """
    kind, _, text = unquote(peer).partition(":")
    return text.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else kind


def shown_by(context: "grpc.aio.ServicerContext[Any, Any]") -> list[str]:
    """The common names of a caller's certificate, and its URIs; none without TLS."""
    auth = context.auth_context()
    names = (*auth.get("x509_common_name", ()), *auth.get("peer_uri", ()))
    return [name.decode("utf-8", "replace") for name in names]
