"""Peers: who calls, as gRPC names them."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hubbub.runtime.rpc.limiter import network

if TYPE_CHECKING:
    import grpc.aio

__all__ = ["address_of", "caller_of"]


def caller_of(context: "grpc.aio.ServicerContext[Any, Any]") -> str:
    """What limits know whoever makes this call by."""
    return network(address_of(context.peer()))


def address_of(peer: str) -> str:
    """Of "ipv4:1.2.3.4:567" or "ipv6:%5B::1%5D:567" the address.

    Of a Unix socket, say, its kind: all of them are one.
    """
    kind, _, text = unquote(peer).partition(":")
    return text.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else kind
