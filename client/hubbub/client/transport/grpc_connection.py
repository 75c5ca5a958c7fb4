"""gRPC to the shuffler: the only module of the client that imports it."""

import inspect
import os
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any, Final

import grpc

from hubbub.client.transport.contract import (
    FOR_GOOD,
    TLS_FAILED,
    GivenUp,
    SealedReport,
    Submitted,
    TryAgain,
    hint_of,
)
from hubbub.client.transport.messages import answer_in, request_of
from hubbub.errors import BadParameter
from hubbub.errors.address_checks import proxy_options

SERVICE: Final = "hubbub.wire.v1.Shuffler"
METHOD: Final = "Submit"
NOTICE: Final = "hubbub-notice-bin"
HINT: Final = "grpc-retry-pushback-ms"
# Measured on two cores: gRPC starts with 4 descriptors and 6 threads, and aborts with one less.
_FREE_FILES: Final = 16
_FREE_THREADS: Final = 24
# gRPC's text about the last address that it tried, without the address.
_CAUSE: Final = re.compile(r"last error: [A-Z_]+: \S+ (.+)")
_HANDSHAKE: Final = re.compile(r"handshake|peer name", re.IGNORECASE)
_OPTIONS: Final = (
    # A silently dead connection is only noticed while a call waits on it.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.enable_retries", 0),  # the sender retries, since it sees the whole outbox
    ("grpc.max_receive_message_length", 1 << 20),
)


class GrpcConnection:
    """One gRPC channel; `roots` as PEM, None for the system's. Raises TryAgain if none opens."""

    def __init__(self, address: str, roots: str | None, *, insecure: bool) -> None:
        _check_room()
        try:
            options = (*_OPTIONS, *proxy_options(address))
        except BadParameter as error:
            raise TryAgain("proxy_address", cause=str(error)) from error
        # PRIVACY: unwrapped. Tools that watch an app (Sentry, OpenTelemetry, Datadog) wrap these to
        # add the ids of its traces, and so of its people, to every call.
        if insecure:
            dial = inspect.unwrap(grpc.insecure_channel)
            self._channel: grpc.Channel = dial(address, options)
        else:
            credentials = grpc.ssl_channel_credentials(roots.encode() if roots else None)
            dial = inspect.unwrap(grpc.secure_channel)
            self._channel = dial(address, credentials, options)
        self._submit: Any = self._channel.unary_unary(f"/{SERVICE}/{METHOD}")

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        request = request_of(reports)

        def call() -> Any:
            try:
                return self._submit(request, timeout=timeout_seconds)
            except (grpc.RpcError, ValueError) as error:
                return error  # gevent's pool would print it

        monkey, gevent = (sys.modules.get(name) for name in ("gevent.monkey", "gevent"))
        if monkey and gevent and monkey.is_module_patched("threading"):
            answer = gevent.get_hub().threadpool.apply(call)  # it blocks no greenlet
        else:
            answer = call()
        if isinstance(answer, grpc.RpcError):
            raise _not_sent(answer) from answer
        if isinstance(answer, ValueError):  # closed by another thread in the meantime
            raise TryAgain("connection_closed") from answer
        return answer_in(answer, len(reports))

    def close(self) -> None:
        """Ends every call, and closes the channel."""
        self._channel.close()


def _check_room() -> None:
    """Raises TryAgain if gRPC lacks resources to start: without them it aborts the process."""
    files: list[int] = []
    done = threading.Event()
    try:
        for _ in range(_FREE_FILES):
            files.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 each is closed below
        for _ in range(_FREE_THREADS):
            threading.Thread(target=done.wait, daemon=True).start()
    except OSError as error:
        raise TryAgain("no_descriptors", cause=error.strerror or "") from error
    except RuntimeError as error:
        raise TryAgain("no_threads", cause=str(error)) from error
    finally:
        done.set()
        for file in files:
            os.close(file)


def _not_sent(error: grpc.RpcError) -> TryAgain | GivenUp:
    reason = error.code().name.lower()
    trailing: dict[str, str | bytes] = {
        str(item.key): item.value for item in error.trailing_metadata() or ()
    }
    is_invalid = error.code() is grpc.StatusCode.INVALID_ARGUMENT
    if is_invalid and trailing.get(FOR_GOOD[0]) == FOR_GOOD[1]:
        return GivenUp(reason)
    hint, notice = hint_of(str(trailing.get(HINT, ""))), trailing.get(NOTICE)
    raw_notice = notice if isinstance(notice, bytes) else b""
    cause = _CAUSE.search(error.details() or "")
    if cause and _HANDSHAKE.search(cause[1]):
        reason = TLS_FAILED
    return TryAgain(
        reason, None if hint is None else hint / 1000, raw_notice, cause[1] if cause else ""
    )
