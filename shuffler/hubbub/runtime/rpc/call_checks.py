"""Checks each gRPC call before a service sees it, and keeps its content out of the log."""

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

import grpc
import grpc.aio

from hubbub.runtime.messages import read_message
from hubbub.runtime.rpc.call_limits import Calls
from hubbub.runtime.rpc.callers import Context, caller_of, certificate_names, come_back, refuse
from hubbub.runtime.tls import names_of

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
    frames = []
    trace = error.__traceback__
    while trace:
        frames.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    log.error("%s failed: %s at %s", task, type(error).__name__, " > ".join(frames[1:]))
