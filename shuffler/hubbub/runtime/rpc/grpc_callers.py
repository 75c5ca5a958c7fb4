"""Callers of gRPC: who they are, and refusals that state whether and when they may retry."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn
from urllib.parse import unquote

import grpc
import grpc.aio

from hubbub.runtime.rpc.rate_limiter import network_of
from hubbub.runtime.untrusted_messages import hint_seconds

_MARK: Final = ("hubbub-refused", "for-good")

Context = grpc.aio.ServicerContext[Any, Any]
Trailers = Callable[[], Sequence[tuple[str, str | bytes]]]
"""What goes along with a refusal for now, the same for everybody."""


async def come_back(
    context: Context, wait_seconds: float, message: str, trailers: Trailers = tuple
) -> NoReturn:
    """Refuses a call for now: RESOURCE_EXHAUSTED, with a hint when to try again.

    The hint is drawn from [`wait_seconds`, 2 `wait_seconds`], so that refused callers do not all
    come back at once. `trailers` is further trailing metadata.
    """
    hint = round(1000 * hint_seconds(wait_seconds))
    metadata = ("grpc-retry-pushback-ms", str(hint)), *trailers()
    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message, metadata)
    raise AssertionError("abort does not return")


async def refuse(context: Context, message: str) -> NoReturn:
    """Refuses a call for good: INVALID_ARGUMENT, with a mark that no proxy would add.

    A caller that finds the mark need never send the same bytes again.
    """
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, message, (_MARK,))
    raise AssertionError("abort does not return")


def caller_of(context: Context) -> str:
    """The key by which limits recognise the caller of a call."""
    return network_of((address_of(context.peer()), 0))


def address_of(peer: str) -> str:
    """The address in "ipv4:1.2.3.4:567" or "ipv6:%5B::1%5D:567".

    Other kinds, such as Unix sockets, yield the kind itself: all of one kind count as one caller.
    """
    kind, _, text = unquote(peer).partition(":")
    return text.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else kind


def certificate_names(context: Context) -> list[str]:
    """Common names and URIs in a caller's certificate; empty without TLS."""
    auth = context.auth_context()
    names = (*auth.get("x509_common_name", ()), *auth.get("peer_uri", ()))
    return [name.decode("utf-8", "replace") for name in names]
