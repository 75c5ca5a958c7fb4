"""The sender: submits each report of the outbox exactly once.

Every attempt sends the same bytes, also after a restart, so that the shuffler recognizes a resend.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hubbub.bundles import Bundle, open_notice
from hubbub.client.clock import Clock
from hubbub.client.delivery.sealing_into_outbox import Entering
from hubbub.client.delivery.waits import longest_soon, soon, uniform
from hubbub.client.device_metric import stored_notice
from hubbub.client.epochs_to_cover import WaitingEpochs, seconds_to_next, waiting_epochs
from hubbub.client.files import limited_to, seconds_left
from hubbub.client.mistakes_and_counters import Diagnostics
from hubbub.client.reentry_and_forks import NoReentryLock
from hubbub.client.reporter import Reporter
from hubbub.client.state.contract import DISABLED, SENT, STOPPED, Dropped, OutboxReport, State
from hubbub.client.transport.contract import GivenUp, NotSent, SealedReport, Transport, TryAgain
from hubbub.errors import ModelsRefused, NoticeRefused, StateBusy, StateUnusable

if TYPE_CHECKING:
    from hubbub.client.delivery.token_store import TokenStore
    from hubbub.tokens.token import Minted

# These refusals concern the token, not the report, which waits for another token, or for a
# shuffler with the issuer's key.
_TOKEN_SPENT: Final = "refused_token_spent"  # noqa: S105 a fate
_TOKEN_REFUSED: Final = frozenset({"refused_no_token", _TOKEN_SPENT})

_BATCH: Final = 500
_PROBE: Final = 20  # after a failure: enough to see whether the shuffler answers again
_BATCH_BYTES: Final = 1 << 20
_CALL_SECONDS: Final = 10.0
_LONGEST_SECONDS: Final = 1e6  # SQLite counts milliseconds in 31 bits
_LONGEST_ASKED_SECONDS: Final = 3600.0
_SHORTEST_ASKED_SECONDS: Final = 1.0  # after some failures: attempts cost power
_CLAIMED_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.02
_MODELS_SECONDS: Final = 60.0  # until a model's next state is requested again


class Sender:
    """Moves drawn payloads into the state by `entering`, and from there into a transport.

    Attributes:
        failures: number of consecutive failed submissions.
        tokens: for a bundle with an issuer.
        is_withdrawn: whether a person for whom the app acts has said no since a report was drawn;
            it may raise StateUnusable.
    """

    def __init__(
        self,
        reporter: Reporter,
        state: State,
        bundle: Bundle,
        entering: Entering,
        transport: Transport,
        *,
        clock: Clock,
        diagnostics: Diagnostics,
    ) -> None:
        self._reporter = reporter
        self.tokens: TokenStore | None = None
        self.is_withdrawn: Callable[[OutboxReport], bool] = lambda _: True
        self._state = state
        self._bundle = bundle
        self.entering = entering
        self._transport = transport
        self._clock = clock
        self._diagnostics = diagnostics
        self._sending = NoReentryLock()
        self.failures = 0
        self._waiting = 0
        self._last_notice = b""
        self._stopped = threading.Event()

    def waiting(self) -> int:
        """Returns the number of reports that wait and may be sent."""
        return 0 if self._reporter.is_local else self._state.waiting(self._held_back())

    def has_covered(self) -> bool:
        """Returns whether reports of past epochs wait, of metrics with a default."""
        exclusions = waiting_epochs(self._bundle, self._clock.now())
        if not exclusions:
            return False
        return self._state.waiting(exclusions) > self._state.waiting(
            [(s, 0, end) for s, _, end in exclusions]
        )

    def seconds_to_work(self) -> float | None:
        """Returns seconds until defaults, tokens or models are due; None for never."""
        moments = [seconds_to_next(self._bundle, self._clock.now())]
        if self.tokens and self._reporter.is_on:
            moments.append(self.tokens.seconds_to_next())
        if self._reporter.awaits_models:
            moments.append(uniform(0.5, 1.5) * _MODELS_SECONDS)
        return min((moment for moment in moments if moment is not None), default=None)

    def _held_back(self) -> WaitingEpochs:
        exclusions = waiting_epochs(self._bundle, self._clock.now())
        return [*exclusions, *self.tokens.waiting] if self.tokens else exclusions

    def flush(self, seconds: float, *, patient: bool) -> bool:
        """Sends for at most `seconds`, retrying if `patient`; returns whether nothing is left."""
        seconds = max(0.0, min(seconds, _LONGEST_SECONDS))  # of no number: 0
        self.entering.is_flushing = True
        try:
            with limited_to(seconds):
                return self._flush(self._clock.monotonic() + seconds, patient=patient)
        except Exception as error:  # noqa: BLE001 a fault of hubbub must not disturb the app
            self._diagnostics.warn_of_fault(error)
        finally:
            self.entering.is_flushing = False
        return False

    def _flush(self, deadline: float, *, patient: bool) -> bool:
        self.fetch_models(deadline - self._clock.monotonic())
        self.entering.enter()
        while True:
            self.fetch_tokens(deadline - self._clock.monotonic())
            wait = self.attempt(deadline - self._clock.monotonic())
            if wait is None and self._waiting and self.tokens and not self._stopped.is_set():
                wait = self.tokens.seconds_to_retry()
            if wait is None:
                return not (self._waiting or self._reporter.awaits_models)
            if self._clock.monotonic() + wait >= deadline or (wait and not patient):
                return False
            self._clock.sleep(wait)

    def attempt(self, timeout_seconds: float) -> float | None:
        """Submits once; returns seconds until the next attempt, or None if nothing is left.

        After StateUnusable nothing was sent, or the shuffler's answer could not be stored.
        """
        started = self._clock.monotonic()
        # Another thread may be in the middle of a submission: wait no longer than promised.
        with self._sending.hold(max(0.0, timeout_seconds)) as is_free:
            if not is_free:
                return 0.0
            remaining_seconds = min(
                timeout_seconds - (self._clock.monotonic() - started), _CALL_SECONDS
            )
            return self._attempt(remaining_seconds) if remaining_seconds > 0 else 0.0

    def fetch_models(self, timeout_seconds: float) -> None:
        """Requests the state of models, by a submission without reports, if examples wait for it.

        PRIVACY: the shuffler learns that this round of some model is the device's, which its report
        would show as well.
        """
        if not (self._reporter.awaits_models and timeout_seconds > 0) or self._stopped.is_set():
            return
        with self._sending.hold(timeout_seconds) as is_free:
            if not is_free:
                return
            try:
                answer = self._transport.submit([], min(timeout_seconds, _CALL_SECONDS))
                self._store_notice(answer.notice)
                if answer.models:
                    self._reporter.hear_models(answer.models)
            except NotSent as error:
                self._diagnostics.warn_once(error.reason, "models wait: %s", error)
            except ModelsRefused as error:
                self._diagnostics.warn_once("models", "the state of models is refused: %s", error)

    def fetch_tokens(self, timeout_seconds: float) -> None:
        """Requests the tokens that are due. Raises StateUnusable if they could not be stored."""
        if self.tokens and self._reporter.is_on and not self._stopped.is_set():
            self.tokens.fetch(min(timeout_seconds, _CALL_SECONDS))

    def stop(self) -> None:
        """Submits nothing more, and waits for running submissions and entries."""
        self._stopped.set()
        if not self._sending.is_ours():  # this thread might hold the transport's lock as well
            self._transport.close()
        for lock in (self._sending, self.entering.lock):
            with lock.hold(seconds_left()):
                pass

    def is_busy_here(self) -> bool:
        """Returns whether this thread is inside a report, an entry or a submission."""
        return any(
            lock.is_ours() for lock in (self.entering.lock, self._sending, self._reporter.lock)
        )

    def await_others(self, wait_seconds: float) -> None:
        """Waits until no other process of the app submits reports that were purged meanwhile."""
        deadline = self._clock.monotonic() + wait_seconds
        while self._clock.monotonic() < deadline:
            with contextlib.suppress(StateBusy):
                if not self._state.purged_in_flight(self._clock.now()):
                    return
            self._clock.sleep(_LOOK_SECONDS)

    def go_on(self) -> None:
        """Submits again."""
        self._stopped.clear()

    def after_fork_in_child(self) -> None:
        """Resets a child: running entries and submissions are its parent's."""
        self.entering.lock.after_fork_in_child()
        self._sending.after_fork_in_child()
        self._stopped = threading.Event()

    def _attempt(self, timeout_seconds: float) -> float | None:
        if self._stopped.is_set() or self._reporter.is_local:
            self._waiting = self._state.waiting()
            return None
        most = _PROBE if self.failures else _BATCH
        exclusions = self._held_back()
        reports, late = self._state.take(most, _BATCH_BYTES, self._clock.now(), exclusions)
        self._diagnostics.drop(late)
        if not reports:
            self._waiting = self._state.waiting()
            return _CLAIMED_SECONDS if self._waiting and self._state.waiting(exclusions) else None
        self._waiting = len(reports)
        try:
            fates, unread, seconds = self._fates_of_withdrawn(reports, timeout_seconds / 2)
            ready = [r for r in reports if r.id not in fates and r.id not in unread]
            tokens = self.tokens.give(ready) if self.tokens else {}
            ready = [r for r in ready if r.id in tokens] if self.tokens else ready
            sent, failure = self._submit(ready, tokens, timeout_seconds - seconds)
        except BaseException:  # a signal's handler may raise anything, such as KeyboardInterrupt
            self._state.release(report.id for report in reports)
            raise
        fates |= sent
        if fates:
            # If this fails, the same bytes are sent again.
            self._waiting = self._state.record_results(fates)
        if self.tokens:
            self.tokens.settle(fates)
        streams = {report.id: report.stream for report in reports}
        self._diagnostics.drop(
            Dropped(streams[id_], fate) for id_, fate in fates.items() if fate != SENT
        )
        if failure is None and not unread:
            self.failures = 0
            return 0.0 if self._waiting else None
        self._state.release(id_ for id_ in streams if id_ not in fates)
        self.failures += 1
        if failure is None:
            return soon(self.failures)
        self._diagnostics.warn_once(failure.reason, "reports wait: %s", failure)
        if not failure.after_seconds:
            return soon(self.failures)
        shortest = min(_SHORTEST_ASKED_SECONDS, longest_soon(self.failures))
        return min(max(failure.after_seconds, shortest), _LONGEST_ASKED_SECONDS)

    def _fates_of_withdrawn(
        self, reports: Sequence[OutboxReport], max_seconds: float
    ) -> tuple[dict[int, str], set[int], float]:
        """Returns fates of stopped and withdrawn reports, unread reports, and the seconds taken."""
        fates: dict[int, str] = {}
        unread: set[int] = set()
        seconds = 0.0
        for report in reports:
            if self._reporter.is_stopped(report.stream, report.epoch):
                fates[report.id] = STOPPED
                continue
            if not report.person:
                continue
            if seconds > max_seconds:
                unread.add(report.id)
                continue
            started = self._clock.monotonic()
            try:
                if self.is_withdrawn(report):
                    fates[report.id] = DISABLED
            except StateUnusable as error:  # PRIVACY: the report waits; others leave meanwhile
                unread.add(report.id)
                self._diagnostics.warn_once("consents", "persons' reports wait: %s", error)
            seconds += self._clock.monotonic() - started
        return fates, unread, seconds

    def _submit(
        self,
        reports: Sequence[OutboxReport],
        tokens: "Mapping[int, Minted]",
        timeout_seconds: float,
    ) -> tuple[dict[int, str], TryAgain | None]:
        """Returns the fates of reports, and the failure that leaves all others unknown, if any."""
        deadline = self._clock.monotonic() + timeout_seconds
        fates: dict[int, str] = {}
        refused = ""
        parts = [reports] if reports else []
        while parts:
            part = parts.pop()
            if self._stopped.is_set():
                return fates, TryAgain("stopped")
            messages = [
                SealedReport(
                    stream=report.stream,
                    epoch=report.epoch,
                    key_id=report.key_id,
                    sealed=report.sealed,
                    token=tokens[report.id].token(report.sealed) if report.id in tokens else b"",
                )
                for report in part
            ]
            remaining_seconds = max(0.0, deadline - self._clock.monotonic())
            try:
                answer = self._transport.submit(messages, remaining_seconds)
            except TryAgain as error:
                self._store_notice(error.notice)
                return fates, error
            except GivenUp as error:
                if len(part) == 1:
                    fates[part[0].id] = f"rejected_{error.reason}"
                else:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                continue
            part_fates = {r.id: why or SENT for r, why in zip(part, answer.results, strict=True)}
            self._store_notice(answer.notice)
            fates |= {
                number: fate for number, fate in part_fates.items() if fate not in _TOKEN_REFUSED
            }
            refused = refused or next(
                (fate for fate in part_fates.values() if fate in _TOKEN_REFUSED), ""
            )
            if self.tokens:  # another report had its token, before a state was restored
                self.tokens.settle(n for n, fate in part_fates.items() if fate == _TOKEN_SPENT)
        return fates, TryAgain(refused) if refused else None

    def _store_notice(self, signed: bytes) -> None:
        """Stores the operator's notice; if that fails, the next answer brings it again."""
        if not signed or signed == self._last_notice:
            return
        operator = self._bundle.operator
        try:
            # PRIVACY: a shuffler can bring no notice of its own, and no older one.
            notice = open_notice(signed, operator=operator)

            def follows(stored: bytes) -> bool:
                former = stored_notice(stored, operator)
                return former is None or notice.follows(former)

            self._state.keep_notice(signed, follows)
            self._reporter.refresh()
            self._last_notice = signed
        except NoticeRefused as error:
            self._last_notice = signed
            self._diagnostics.warn_once("notice", "a notice is refused: %s", error)
        except StateUnusable as error:
            self._diagnostics.warn_once("notice", "a notice cannot be kept: %s", error)
