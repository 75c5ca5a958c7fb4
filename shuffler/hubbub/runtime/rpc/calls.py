"""Calls: how long one may take to arrive, and how many are open at once, of all and of one peer.

A call is seen when its headers are. Until its message is whole it is *arriving*: it costs little,
and the one that has been at it longest gives way to the next: calls that never end end each other.
Then it is *worked on* until we have an answer; past the limit, calls are refused. Of one peer are
counted also those whose answer it does not read.
"""

import asyncio
from collections import Counter
from typing import Any, Final, NoReturn

import grpc
import grpc.aio

from hubbub.runtime.rpc.refusal import Trailers, come_back

_MAX_ARRIVING: Final = 1024
# What is being worked on is in memory, up to the largest message each.
_MAX_WORKED_ON: Final = 256
# Refused for being too many; by then most calls have ended.
_WAIT_SECONDS: Final = 1.0

Context = grpc.aio.ServicerContext[Any, Any]


class Calls:
    """The open calls of one server.

    arrive_seconds: from a call's headers to the end of its message. of_peer: so many arriving, and
    so many more until they are answered, of one peer; 0 for no limit. refusals: counts the calls
    that were refused, by reason. trailers: goes along with a refusal.
    """

    def __init__(
        self,
        *,
        arrive_seconds: float,
        of_peer: int,
        refusals: Counter[str],
        trailers: Trailers = tuple,
    ) -> None:
        self.refusals = refusals
        self.trailers = trailers
        self._arrive_seconds = arrive_seconds
        self.of_peer = of_peer
        # Both in the order in which they came.
        self._arriving: dict[asyncio.Timeout, str] = {}
        self._arriving_of: dict[str, dict[asyncio.Timeout, None]] = {}
        self._worked_on = 0
        self._open_of: Counter[str] = Counter()

    async def message(self, context: Context, peer: str) -> bytes:
        """The message of a call, once it is here; the call is ended if it does not come.

        A second one is never read: a call has one.
        """
        self._make_way(peer)
        limit = asyncio.timeout(self._arrive_seconds)
        self._arriving[limit] = peer
        self._arriving_of.setdefault(peer, {})[limit] = None
        try:
            async with limit:
                raw = await context.read()
        except TimeoutError:
            if limit in self._arriving:
                await self._refuse(context, "too_slow", "its message took too long")
            await self._refuse(context, "gave_way", "more calls came than can wait")
        finally:
            self._forget(limit, peer)
        if not isinstance(raw, bytes):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a call has a message")
        return raw

    async def count(self, context: Context, peer: str) -> None:
        """Count a call as its peer's until its answer was read; refused if those are too many."""
        if self.of_peer:
            if self._open_of[peer] >= self.of_peer:
                await self._refuse(context, "peer_calls", "too many calls of yours at once")
            self._open_of[peer] += 1
            done: Any = lambda _context: self._done(peer)  # noqa: E731 its stub asks for a class
            context.add_done_callback(done)

    async def begin(self, context: Context) -> None:
        """Work on a call from here to `end`; refused if there are too many."""
        if self._worked_on >= _MAX_WORKED_ON:
            await self._refuse(context, "calls_at_once", "too many calls at once")
        self._worked_on += 1

    def end(self) -> None:
        """A call is answered, so far as we can."""
        self._worked_on -= 1

    async def _refuse(self, context: Context, reason: str, why: str) -> NoReturn:
        self.refusals[reason] += 1
        await come_back(context, _WAIT_SECONDS, f"{why}; send again later", self.trailers)

    def _make_way(self, peer: str) -> None:
        of_peer = self._arriving_of.get(peer, {})
        if self.of_peer and len(of_peer) >= self.of_peer:
            oldest, whose = next(iter(of_peer)), peer
        elif len(self._arriving) >= _MAX_ARRIVING:
            oldest, whose = next(iter(self._arriving.items()))
        else:
            return
        self._forget(oldest, whose)
        oldest.reschedule(asyncio.get_running_loop().time())

    def _forget(self, limit: asyncio.Timeout, peer: str) -> None:
        self._arriving.pop(limit, None)
        of_peer = self._arriving_of.get(peer, {})
        of_peer.pop(limit, None)
        if not of_peer:
            self._arriving_of.pop(peer, None)

    def _done(self, peer: str) -> None:
        self._open_of[peer] -= 1
        if not self._open_of[peer]:
            del self._open_of[peer]
