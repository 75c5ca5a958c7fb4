"""Strict: what a call must be before a service sees it, and what its failing may leave behind."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from hubbub.serving.tls import common_name

__all__ = ["Admit", "Strict", "come_back", "refuse"]

_log: Final = logging.getLogger("hubbub.serving")
_random: Final = secrets.SystemRandom()
_MARK: Final = ("hubbub-refused", "for-good")
_HEALTH: Final = "/grpc.health."

Context = grpc.aio.ServicerContext[Any, Any]
Admit = Callable[[Context], float]
"""How long a caller must wait before its call is read; 0 to let it in."""


async def come_back(context: Context, wait_seconds: float, why: str) -> NoReturn:
    """Refuse a call for now: RESOURCE_EXHAUSTED, with a hint when to try again.

    The hint is drawn from [wait, 2 wait], so that those who were refused do not come at once.
    """
    hint = round(1000 * wait_seconds * _random.uniform(1, 2)) + 1
    await context.abort(
        grpc.StatusCode.RESOURCE_EXHAUSTED, why, (("grpc-retry-pushback-ms", str(hint)),)
    )
    raise AssertionError("abort does not return")


async def refuse(context: Context, why: str) -> NoReturn:
    """Refuse a call for good: INVALID_ARGUMENT, with a mark that no proxy would make.

    A caller that finds it need never send the same bytes again.
    """
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, why, (_MARK,))
    raise AssertionError("abort does not return")


class Strict(grpc.aio.ServerInterceptor):
    """Between the wire and every unary method of a server but its health.

    callers: roles; who shows no certificate of one of them is denied.
    A call that is not admitted is refused unread. What is not the message it should be, or holds
    fields that we do not know, is refused as INVALID_ARGUMENT. A fault of our own becomes INTERNAL
    and a log line that names its kind and place, never its text, which could hold what was sent.
    """

    def __init__(self, admit: Admit | None = None, callers: Collection[str] | None = None) -> None:
        self._admit = admit
        self._names = None if callers is None else {common_name(role).encode() for role in callers}

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """The method's handler, behind our checks."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.unary_unary is None or handler.request_deserializer is None:
            return handler
        if handler_call_details.method.startswith(_HEALTH):
            return handler  # a service without room is not a sick one
        behave: Callable[..., Any] = handler.unary_unary
        parse = handler.request_deserializer

        async def call(raw: bytes, context: Context) -> Any:  # noqa: ANN401 the method's own answer
            if self._names is not None and self._names.isdisjoint(_common_names(context)):
                await context.abort(
                    grpc.StatusCode.PERMISSION_DENIED, "not for the role of this certificate"
                )
            wait_seconds = self._admit(context) if self._admit else 0.0
            if wait_seconds:
                await come_back(context, wait_seconds, "no room for you now; send again later")
            try:
                request: Message = parse(raw)
            except DecodeError:
                await refuse(context, "not the message expected")
            # PRIVACY: what we do not know could carry an identifier, so nobody gets to see it.
            if len(UnknownFieldSet(request)):
                await refuse(context, "fields that this version does not know")
            try:
                return await behave(request, context)
            except grpc.aio.AbortError:
                raise
            except Exception as error:  # noqa: BLE001 the boundary to whoever calls us
                _log_fault(handler_call_details.method, error)
                await context.abort(grpc.StatusCode.INTERNAL, "a fault of ours; see our log")

        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=None,
            response_serializer=handler.response_serializer,
        )


def _common_names(context: Context) -> Iterable[bytes]:
    return context.auth_context().get("x509_common_name", ())


def _log_fault(method: str, error: BaseException) -> None:
    frames = []
    trace = error.__traceback__
    while trace:
        frames.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    _log.error("%s failed: %s at %s", method, type(error).__name__, " > ".join(frames[1:]))
