"""Identifies the callers of gRPC calls."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hubbub.runtime.rpc.limiter import network

if TYPE_CHECKING:
    import grpc.aio


def caller_of(context: "grpc.aio.ServicerContext[Any, Any]") -> str:
    """The key by which limits recognise the caller of a call."""
    return network(address_of(context.peer()))


def address_of(peer: str) -> str:
    """The address in "ipv4:1.2.3.4:567" or "ipv6:%5B::1%5D:567".

    Other kinds, such as Unix sockets, yield the kind itself: all of one kind count as one caller.
    """
    kind, _, text = unquote(peer).partition(":")
    return text.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else kind


def shown_by(context: "grpc.aio.ServicerContext[Any, Any]") -> list[str]:
    """Common names and URIs in a caller's certificate; empty without TLS."""
    auth = context.auth_context()
    names = (*auth.get("x509_common_name", ()), *auth.get("peer_uri", ()))
    return [name.decode("utf-8", "replace") for name in names]
