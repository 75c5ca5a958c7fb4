"""Checks each gRPC call before a service sees it: its caller, and how many calls are open at once.

The content of a call is kept out of the log.
A call is seen when its headers are. Until its message is whole it is *arriving*: past a limit the
oldest call of the peer that has most of them gives way, so calls that never end end each other.
Of a message that is not being read, a stream's window is in memory; of one that is being read, up
to the largest message. So only a few are read at once, and each has little time while others wait.
Then a call is *worked on* until we have an answer; past the limit, calls are refused. Of one peer
are counted also those whose answer it does not read.
"""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, NoReturn

import grpc
import grpc.aio

from hubbub.runtime.rpc.grpc_callers import (
    Context,
    Trailers,
    caller_of,
    certificate_names,
    come_back,
    refuse,
)
from hubbub.runtime.tls import names_of
from hubbub.runtime.untrusted_messages import read_message

# Each call keeps its head and its first window in memory: 64 KiB for clients that do not confirm
# our smaller window.
_MAX_ARRIVING: Final = 128
_MAX_WORKED_ON: Final = 256
# Memory of messages being read; those being processed may take as much again.
_MAX_MESSAGES_BYTES: Final = 16 << 20
# For services with large messages, whose callers have certificates or tokens.
_MIN_READ_AT_ONCE: Final = 4
# Least rate of the largest message while other calls wait to be read.
_HURRIED_BYTES_PER_SECOND: Final = 4 << 20
# Delay in a refusal of too many calls; most calls have ended by then.
_WAIT_SECONDS: Final = 1.0


class _Arriving:
    """A call whose message has not arrived completely."""

    def __init__(self, peer: str, arrive_seconds: float) -> None:
        self.peer = peer
        self.limit = asyncio.timeout(arrive_seconds)
        self.may_read = asyncio.Event()
        self.read_since = 0.0  # by the loop's clock, once it may be read


class Calls:
    """The open calls of one server, and their limits.

    Args:
        arrive_seconds: limit from a call's headers to the end of its message.
        of_peer: limit of arriving calls, and of calls not yet answered, of one peer; 0 for none.
        refusals: counts the refused calls, by reason.
        trailers: metadata that goes along with a refusal.
    """

    def __init__(
        self,
        *,
        arrive_seconds: float,
        of_peer: int,
        largest_message_bytes: int,
        refusals: Counter[str],
        trailers: Trailers = tuple,
    ) -> None:
        self.refusals = refusals
        self.trailers = trailers
        self._arrive_seconds = arrive_seconds
        self.of_peer = of_peer
        self._max_read = max(_MIN_READ_AT_ONCE, _MAX_MESSAGES_BYTES // largest_message_bytes)
        self._largest_message_bytes = largest_message_bytes
        self._max_bytes = self._max_read * largest_message_bytes
        self._hurried_seconds = largest_message_bytes / _HURRIED_BYTES_PER_SECOND
        # All in the order in which they came, or began to be read.
        self._arriving: dict[_Arriving, None] = {}
        self._arriving_of: dict[str, dict[_Arriving, None]] = {}
        self._waiting: dict[_Arriving, None] = {}
        self._read: dict[_Arriving, None] = {}
        self._hurrying: asyncio.TimerHandle | None = None
        self._worked_on = self._worked_on_bytes = 0
        self._open_of: Counter[str] = Counter()

    async def message(self, context: Context, peer: str) -> bytes:
        """Waits for the message of a call; ends the call if it does not come in time.

        A second message is never read: a call has one.
        """
        self._make_way(peer)
        call = _Arriving(peer, self._arrive_seconds)
        self._arriving[call] = None
        self._arriving_of.setdefault(peer, {})[call] = None
        try:
            async with call.limit:
                self._waiting[call] = None
                self._let_read()
                self._hurry()
                await call.may_read.wait()  # until there is memory for the largest message
                raw = await context.read()
        except TimeoutError:
            if call in self._arriving:
                await self._refuse(context, "too_slow", "its message took too long")
            await self._refuse(context, "gave_way", "more calls came than can wait")
        finally:
            self._forget(call)
        if not isinstance(raw, bytes):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a call has a message")
        return raw

    async def count(self, context: Context, peer: str) -> None:
        """Counts a call as its peer's until its answer is read; refuses it if too many are open."""
        if self.of_peer:
            if self._open_of[peer] >= self.of_peer:
                await self._refuse(context, "peer_calls", "too many calls from this caller at once")
            self._open_of[peer] += 1
            done: Any = lambda _context: self._end_call(peer)  # noqa: E731 its stub asks for a class
            context.add_done_callback(done)

    async def begin(self, context: Context, size: int) -> None:
        """Counts a call of `size` bytes as worked on until `end`; refuses it if too many are."""
        too_large = self._worked_on and self._worked_on_bytes + size > self._max_bytes
        if too_large or self._worked_on >= _MAX_WORKED_ON:
            await self._refuse(context, "calls_at_once", "too many calls at once")
        self._worked_on += 1
        self._worked_on_bytes += size

    def end(self, size: int) -> None:
        """Stops counting a call of `size` bytes as worked on: our answer is ready."""
        self._worked_on -= 1
        self._worked_on_bytes -= size

    @property
    def message_bytes(self) -> int:
        """Memory of messages worked on, and of those being read, of which half has arrived."""
        return len(self._read) * self._largest_message_bytes // 2 + self._worked_on_bytes

    async def _refuse(self, context: Context, reason: str, message: str) -> NoReturn:
        self.refusals[reason] += 1
        await come_back(context, _WAIT_SECONDS, f"{message}; send again later", self.trailers)

    def _make_way(self, peer: str) -> None:
        of_peer = self._arriving_of.get(peer, {})
        if self.of_peer and len(of_peer) >= self.of_peer:
            self._end(next(iter(of_peer)))
        elif len(self._arriving) >= _MAX_ARRIVING:
            most = max(self._arriving_of.values(), key=len)
            self._end(next(iter(most)))

    def _let_read(self) -> None:
        """Starts reading waiting calls while there is room: the newest of the least-read peer.

        The newest, since an honest message is usually whole already once it is read.
        """
        while self._waiting and len(self._read) < self._max_read:
            read_of = Counter(call.peer for call in self._read)
            call = min(reversed(self._waiting), key=lambda waiting: read_of[waiting.peer])
            del self._waiting[call]
            self._read[call] = None
            call.read_since = asyncio.get_running_loop().time()
            call.may_read.set()

    def _hurry(self) -> None:
        """While calls wait, ends those read for too long, and schedules the next check."""
        if self._hurrying:
            self._hurrying.cancel()
        loop = asyncio.get_running_loop()
        while self._waiting and self._read:
            oldest = next(iter(self._read))
            due = oldest.read_since + self._hurried_seconds
            if due > loop.time():
                self._hurrying = loop.call_at(due, self._hurry)
                return
            self._end(oldest)

    def _end(self, call: _Arriving) -> None:
        """Makes a call give way, unless its time is over already."""
        if not call.limit.expired():
            call.limit.reschedule(asyncio.get_running_loop().time())
        self._forget(call)

    def _forget(self, call: _Arriving) -> None:
        for calls in (self._arriving, self._waiting, self._read):
            calls.pop(call, None)
        of_peer = self._arriving_of.get(call.peer, {})
        of_peer.pop(call, None)
        if not of_peer:
            self._arriving_of.pop(call.peer, None)
        self._let_read()

    def _end_call(self, peer: str) -> None:
        self._open_of[peer] -= 1
        if not self._open_of[peer]:
            del self._open_of[peer]


_log: Final = logging.getLogger("hubbub.runtime")
_HEALTH: Final = "/grpc.health."

Admit = Callable[[Context], float]
"""How long a caller must wait before its call is read; 0 to let it in."""
Spoiled = Callable[[Context, int], None]
"""Told of a call that was read and refused, and of how many bytes its message was."""


class Strict(grpc.aio.ServerInterceptor):
    """A gRPC interceptor in front of every method of a server.

    `callers` are the roles whose certificates are let in (None: anyone; health is open to all);
    `spoiled` is told of calls that were read and refused; `max_fields` limits a message. A call
    that is not admitted is refused before its message has arrived: so every method is served as one
    that takes a stream of requests, of which the first is read; on the wire that is the same. A
    malformed message, or one with unknown fields, is refused as INVALID_ARGUMENT. A fault of ours
    becomes INTERNAL and a log line with its type and place, without its text, which could quote the
    message.
    """

    def __init__(
        self,
        calls: Calls,
        admit: Admit | None = None,
        callers: Collection[str] | None = None,
        spoiled: Spoiled | None = None,
        *,
        max_fields: int | None = None,
    ) -> None:
        self._spoiled = spoiled
        self._max_fields = max_fields
        self._calls = calls
        self._admit = admit
        self._names = None if callers is None else names_of(callers)

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Wraps the handler of a method with our checks.

        None of our methods answers with a stream. Health's Watch does and would never end, so it is
        left out; without it, a caller assumes that we are healthy.
        """
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None or handler.request_deserializer is None:
            self._calls.refusals["watch"] += handler is not None
            return None
        behave: Callable[..., Any] = handler.unary_unary
        parse = handler.request_deserializer
        # A service without room is still healthy.
        health = handler_call_details.method.startswith(_HEALTH)

        async def call(_requests: object, context: Context) -> Any:
            peer = caller_of(context)
            if not health:
                await self._let_in(context)
            raw = await self._calls.message(context, peer)
            await self._calls.count(context, peer)
            if health:
                return await answer(raw, context)
            await self._calls.begin(context, len(raw))
            try:
                return await answer(raw, context)
            finally:
                self._calls.end(len(raw))

        async def answer(raw: bytes, context: Context) -> Any:
            request = read_message(parse, raw, self._max_fields)
            if isinstance(request, str):
                if self._spoiled:
                    self._spoiled(context, len(raw))
                await refuse(context, request)
            try:
                return await behave(request, context)
            except grpc.aio.AbortError:
                raise
            except Exception as error:  # noqa: BLE001 the boundary to callers
                log_fault(_log, handler_call_details.method, error)
                await context.abort(grpc.StatusCode.INTERNAL, "a fault of ours; see our log")

        return grpc.stream_unary_rpc_method_handler(
            call,
            request_deserializer=None,
            response_serializer=handler.response_serializer,
        )

    async def _let_in(self, context: Context) -> None:
        """Aborts the call of a caller who may not call, or not now."""
        if self._names is not None and self._names.isdisjoint(certificate_names(context)):
            self._calls.refusals["role"] += 1
            message = "not for the role of this certificate"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, message)
        wait_seconds = self._admit(context) if self._admit else 0.0
        if wait_seconds:
            message = "no room for this caller now; send again later"
            await come_back(context, wait_seconds, message, self._calls.trailers)


def log_fault(log: logging.Logger, task: str, error: BaseException) -> None:
    """Logs an error's type and place, without its text, which could quote what was sent."""
    frames = [*traceback.walk_tb(error.__traceback__)][1:]
    places = " > ".join(f"{frame.f_code.co_filename}:{line}" for frame, line in frames)
    log.error("%s failed: %s at %s", task, type(error).__name__, places)
