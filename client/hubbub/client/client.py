"""Client: what an app embeds.

client = Client.from_bundle("app.hubbub")
client.report("theme", "dark")
"""

import atexit
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import platformdirs

from hubbub.catalog import Bundle, Metric, epoch_at, epoch_start, key_at, read_bundle
from hubbub.client.device import DeviceMemo
from hubbub.client.ledger import Ledger
from hubbub.client.outbox import Outbox, Waiting
from hubbub.client.outcome import Outcome
from hubbub.client.sender import Sender
from hubbub.client.state import FolderState, State
from hubbub.client.transport import GrpcTransport, Transport
from hubbub.errors import HubbubError
from hubbub.mechanisms import BitSource, SystemBits

__all__ = ["Client"]

_log: Final = logging.getLogger("hubbub.client")

_OUTBOX_SIZE: Final = 10_000
_HOLD_SECONDS: Final = 30.0
_SEND_SECONDS: Final = 300.0
_EXIT_SECONDS: Final = 2.0


class Client:
    """Randomizes values on this device and sends them, in the background, to the shuffler.

    `report()` does no I/O and no cryptography: it draws coins and returns. Sending never raises
    into the app; what could not be sent is in `dropped`, by reason.

    hold_seconds: reports wait a random time up to this before they go, so that the moment of
    sending says nothing about the moment of reporting; None for no background thread at all:
    then only flush() sends.
    """

    def __init__(
        self,
        bundle: Bundle,
        state: State,
        transport: Transport,
        *,
        hold_seconds: float | None = _HOLD_SECONDS,
        coins: BitSource | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bundle = bundle
        self._state = state
        self._transport = transport
        self._coins = coins or SystemBits()
        self._clock = clock
        self._lock = threading.Lock()
        self._ledger = Ledger(state.load())
        self._outbox = Outbox(_OUTBOX_SIZE)
        self._sender = Sender(self._outbox, bundle, transport, self._save)
        self._closing = threading.Event()
        self._wake = threading.Event()
        if hold_seconds is not None:
            threading.Thread(
                target=self._send_in_background,
                args=(hold_seconds,),
                name="hubbub-sender",
                daemon=True,
            ).start()
            atexit.register(self.close, _EXIT_SECONDS)

    @classmethod
    def from_bundle(
        cls,
        path: str | os.PathLike[str],
        *,
        state_dir: str | os.PathLike[str] | None = None,
        operator: bytes | None = None,
        insecure: bool = False,
    ) -> Self:
        """A client for the bundle in a file.

        state_dir: where this device keeps its secret and ledger; by default the user's own folder
            for application state.
        operator: the operator's Ed25519 public key (32 bytes) to insist on. Without it the state
            folder trusts the first operator it sees, and no other after that.
        insecure: no TLS; only for a shuffler on this machine.

        Raises:
            BundleRefused: the bundle is unreadable, altered, or another operator's.
            StateUnusable: the state folder cannot be used.
        """
        bundle = read_bundle(Path(path), operator=operator)
        folder = Path(state_dir) if state_dir else platformdirs.user_state_path("hubbub")
        state = FolderState(folder)
        state.pin(bundle.operator)
        transport = GrpcTransport(bundle.shuffler, roots=bundle.roots, insecure=insecure)
        return cls(bundle, state, transport)

    def report(self, metric: str, value: Any) -> Outcome:  # noqa: ANN401 each metric has its own
        """Randomize one value and queue it. Never blocks on the network.

        Raises:
            UnknownMetric: the bundle has no such metric.
            ValueOutOfDomain: the metric has no such value; the message does not show it.
        """
        entry = self._bundle.metric(metric)
        code = entry.code(value)
        now = self._clock()
        epoch = epoch_at(now, entry.epoch)
        if self._closing.is_set():
            return Outcome.CLOSED
        if datetime.fromtimestamp(now, UTC).date() > entry.expires:
            return Outcome.EXPIRED
        if key_at(self._bundle.keys, epoch_start(epoch, entry.epoch)) is None:
            return Outcome.NO_KEY
        memo = DeviceMemo(self._state.secret, metric)
        tag = memo.tag(entry.memoized.permanent_key(code)) if entry.memoized else ""
        with self._lock:
            if self._outbox.full:
                return Outcome.OVERFLOWED
            # PRIVACY: the ledger is asked before any coin is drawn.
            refusal = self._ledger.charge(entry, epoch, tag)
            if refusal is not None:
                return refusal
            self._outbox.add(Waiting(metric, epoch, self._payload(entry, code, memo)))
        self._wake.set()
        return Outcome.QUEUED

    def flush(self, timeout: float = 10.0) -> bool:
        """Send what waits now, for at most `timeout` seconds; True if nothing is left waiting."""
        try:
            return self._sender.send(timeout)
        except HubbubError as error:
            _log.warning("reports wait on: %s", error)
            return False

    def close(self, timeout: float = 10.0) -> bool:
        """Flush, then stop for good; True if nothing was left behind."""
        if self._closing.is_set():
            return not len(self._outbox)
        self._closing.set()
        atexit.unregister(self.close)
        done = self.flush(timeout)
        self._sender.stop()
        self._wake.set()
        self._transport.close()
        return done

    @property
    def waiting(self) -> int:
        """How many payloads wait to be sent."""
        return len(self._outbox)

    @property
    def dropped(self) -> dict[str, int]:
        """How many payloads were given up, by reason."""
        return dict(self._sender.dropped)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _payload(self, metric: Metric, code: Any, memo: DeviceMemo) -> bytes:  # noqa: ANN401
        if metric.memoized:
            return metric.memoized.randomize_again(code, memo, self._coins)
        return metric.randomizer.randomize(code, self._coins)

    def _save(self) -> None:
        with self._lock:
            self._state.save(self._ledger.entries())

    def _send_in_background(self, hold_seconds: float) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            hold = secrets.SystemRandom().uniform(0, hold_seconds)
            if not self._closing.wait(hold) and not self.flush(_SEND_SECONDS):
                self._wake.set()
