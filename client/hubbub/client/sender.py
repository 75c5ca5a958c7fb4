"""The sender: seals what waits, submits it, tries again. At least once, never as two."""

import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from hubbub.catalog import Bundle, epoch_start, key_at, seal, seal_info
from hubbub.client.outbox import Outbox, Waiting
from hubbub.client.transport import NotSent, Transport
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason, SubmitRequest

__all__ = ["Sender"]

_log: Final = logging.getLogger("hubbub.client")

_BATCH: Final = 500
_BATCH_BYTES: Final = 1 << 20
_CALL_SECONDS: Final = 10.0
_FIRST_WAIT_SECONDS: Final = 0.2
_LONGEST_WAIT_SECONDS: Final = 60.0
_random: Final = secrets.SystemRandom()


class Sender:
    """Empties an outbox into a transport.

    before: called before anything leaves, so that what was spent is on disk first.
    dropped: how many payloads were given up, by reason; nothing vanishes uncounted.
    """

    def __init__(
        self, outbox: Outbox, bundle: Bundle, transport: Transport, before: Callable[[], None]
    ) -> None:
        self._outbox = outbox
        self._bundle = bundle
        self._transport = transport
        self._before = before
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self.dropped: Counter[str] = Counter()

    def send(self, timeout_seconds: float) -> bool:
        """Send all that waits, trying again until the time is up; True if nothing is left."""
        deadline = time.monotonic() + timeout_seconds
        # Another thread may be in the middle of a long retry: wait no longer than promised.
        if not self._sending.acquire(timeout=timeout_seconds):
            return False
        try:
            return self._send_until(deadline)
        finally:
            self._sending.release()

    def stop(self) -> None:
        """Let a send that waits for its next try return."""
        self._stop.set()

    def _send_until(self, deadline: float) -> bool:
        attempt = 0
        while batch := self._outbox.some(_BATCH, _BATCH_BYTES):
            left = deadline - time.monotonic()
            if left <= 0 or self._stop.is_set():
                return False
            try:
                self._submit(batch, min(left, _CALL_SECONDS))
                attempt = 0
            except NotSent as error:
                if not error.retry:
                    self._drop(batch, str(error))
                    continue
                wait = error.after_seconds or _backoff_seconds(attempt)
                attempt += 1
                if self._stop.wait(min(wait, max(0.0, deadline - time.monotonic()))):
                    return False
        return True

    def _submit(self, batch: Sequence[Waiting], timeout_seconds: float) -> None:
        self._before()
        request = SubmitRequest(reports=[self._sealed(waiting) for waiting in batch])
        response = self._transport.submit(request, timeout_seconds)
        self._outbox.remove(batch)
        for refusal in response.refused:
            self._count("refused: " + Reason.Name(refusal.reason), 1)

    def _sealed(self, waiting: Waiting) -> SealedReport:
        if waiting.report is None:
            metric = self._bundle.metric(waiting.stream)
            key = key_at(self._bundle.keys, epoch_start(waiting.epoch, metric.epoch))
            if key is None:
                raise AssertionError("report() queues nothing without a key")
            waiting.report = SealedReport(
                stream=waiting.stream,
                epoch=waiting.epoch,
                key_id=key.id,
                sealed=seal(waiting.payload, key.key, seal_info(waiting.stream, waiting.epoch)),
            )
        return waiting.report

    def _drop(self, batch: Sequence[Waiting], reason: str) -> None:
        self._outbox.remove(batch)
        self._count(reason, len(batch))

    def _count(self, reason: str, number: int) -> None:
        if reason not in self.dropped:
            _log.warning("reports dropped, counted from now on: %s", reason)
        self.dropped[reason] += number


def _backoff_seconds(attempt: int) -> float:
    """Exponential backoff with full jitter, so that devices do not come back all at once."""
    return _random.uniform(0, min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt))
