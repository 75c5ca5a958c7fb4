"""The door of gRPC: who asks by their certificate, and the audit's line of what they asked.

What exists for them is said once for both doors, by Caller and QueryEngine.seen_by.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import Message

import hubbub.wire.v1.services_pb2 as wire
from hubbub.aggregator.access.audit_trail import AuditedQuestion, AuditTrail, Seen
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.access.rights import EVERYONE, Caller
from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.errors.status import NAMED, status_of
from hubbub.runtime.rpc.peers import caller_of, shown_by

_log: Final = logging.getLogger("hubbub.aggregator")

Context = grpc.aio.ServicerContext[Any, Any]

# Each takes a message of its own, so the question is known by what is asked.
_QUESTIONS: Final = {
    method.input_type.name: f"{name}/{method.name}"
    for name in ("Query", "Operator", "Releases")
    for method in wire.DESCRIPTOR.services_by_name[name].methods
}
_TOLD: Final = ("confidence", "number", "rows", "columns")


async def abort(context: Context, error: HubbubError) -> NoReturn:
    """End a call with the status that goes with an error, and its name."""
    named = ((NAMED, type(error).__name__),)
    await context.abort(grpc.StatusCode[status_of(error).grpc], str(error), named)
    raise AssertionError("abort does not return")


class GrpcDoor:
    """Lets in, and notes.

    access: who may ask. audit: has a line for every question; None for none. secured: whether
    callers show certificates; without, everyone on this machine may ask.
    """

    def __init__(self, access: Access, audit: AuditTrail | None = None, *, secured: bool) -> None:
        self.access = access
        self.audit = audit
        self._secured = secured

    def lets_in(self, context: Context, method: str) -> bool:
        """Whether who calls may ask anything; asked before the question is read."""
        if self._caller(context) is not None:
            return True
        names = ", ".join(shown_by(context)) or "no name"
        question = AuditedQuestion("gRPC", "/".join(method.rsplit(".", 1)[-1].split("/")[-2:]))
        refused = Seen(why=f"nobody who may ask: {names[:200]}")
        try:
            self._note(question, None, context, "PERMISSION_DENIED", refused)
        except ServiceUnavailable as error:
            _log.error("%s", error)
        return False

    @asynccontextmanager
    async def answering(self, context: Context, request: Message) -> AsyncIterator[Caller]:
        """One question: who asks it. Ends the call with the status of whatever is raised within.

        Its line is written before it is answered; if it cannot be, that is the answer.
        """
        caller = self._caller(context)
        if caller is None:  # taken out of the file between the admission and now
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "you may ask nothing here")
        question, seen = _question(request), _seen(request)
        try:
            try:
                yield caller
            except HubbubError as error:
                self._note(question, caller, context, status_of(error).grpc, seen)
                raise
            except Exception:
                self._note(question, caller, context, "INTERNAL", seen)
                raise
            self._note(question, caller, context, "OK", seen)
        except HubbubError as error:
            await abort(context, error)

    def _caller(self, context: Context) -> Caller | None:
        return self.access.certified(shown_by(context)) if self._secured else EVERYONE

    def _note(
        self,
        question: AuditedQuestion,
        caller: Caller | None,
        context: Context,
        status: str,
        seen: Seen,
    ) -> None:
        if self.audit:
            self.audit.note(question, caller, caller_of(context), status, seen)


def _question(request: Message) -> AuditedQuestion:
    name = _QUESTIONS[request.DESCRIPTOR.name]
    metric = getattr(request, "metric", "") or getattr(request, "model", "")
    told: dict[str, object] = {field: getattr(request, field, None) for field in _TOLD}
    for field, prefix in (("range", ""), ("before", ""), ("after", "to_")):
        epochs = getattr(request, field, None)
        if isinstance(epochs, wire.Range):
            told |= {f"{prefix}last": epochs.last, f"{prefix}epochs": epochs.epochs}
    return AuditedQuestion(
        "gRPC", name, metric, {field: held for field, held in told.items() if held}
    )


def _seen(request: Message) -> Seen:
    looked_for = len(getattr(request, "candidates", ()))
    release = request.query[:40] if isinstance(request, wire.ReleaseRequest) else ""
    return Seen(candidates=looked_for, release=release)
