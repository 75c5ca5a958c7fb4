"""Client: what an app embeds.

client = Client.from_bundle("app.hubbub")
client.report("theme", "dark")
"""

import atexit
import contextlib
import math
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from hubbub.bundles import Bundle
from hubbub.client.clock import SYSTEM_CLOCK, Clock
from hubbub.client.delivery.background import Background
from hubbub.client.delivery.sealing_into_outbox import Entering, Sealer
from hubbub.client.delivery.sender import Sender
from hubbub.client.delivery.waits import Waits
from hubbub.client.files import limited_to
from hubbub.client.lazy_log import warn
from hubbub.client.mistakes_and_counters import Diagnostics, Mistakes, OnDrop
from hubbub.client.outcome import Outcome
from hubbub.client.prevented_start import NO_BUNDLE, is_prevented, is_strict, no_state, reason_of
from hubbub.client.public_field_values import Public, PublicValues
from hubbub.client.reentry_and_forks import (
    NoReentryLock,
    check_stack,
    follow,
    notice,
    with_own_stack,
)
from hubbub.client.reporter import Reporter
from hubbub.client.settings import Account, check_arguments, check_names, epsilon_limit
from hubbub.client.state.contract import Dropped, State
from hubbub.client.state.memory import MemoryState
from hubbub.client.transport.contract import Transport
from hubbub.client.transport.transport_by_address import transport_to
from hubbub.errors import BadParameter, BundleRefused, StateBusy, StateUnusable, UnknownMetric
from hubbub.mechanisms import BitSource, SystemBits

if TYPE_CHECKING:
    from hubbub.client.ledger_view import LedgerView
    from hubbub.client.server_persons import Person, Persons
    from hubbub.client.transport.issuer_connection import AskIssuer

_EXIT_SECONDS: Final = 2.0
_EXIT_SWITCH_SECONDS: Final = 1e-4
_STOP_SECONDS: Final = 2.0
_FAILED: Final = Outcome.FAILED  # looked up once: a lookup is a call, and the stack may be full
_NO_TRIES: Final = 4  # each waits 5 s while other processes write
_WAKING: Final = frozenset({Outcome.QUEUED, Outcome.AWAITS_STATE, Outcome.COUNTED, Outcome.NOTED})


class Client:
    """Randomizes values on this device and sends them to the shuffler in the background.

    `report()` does no I/O. Faults of network or server raise nothing; discarded payloads are
    counted in `dropped`, by reason.

    Args:
        hold_seconds: a report waits a random time up to this before it is sent; None for no
            background thread: then only flush() and close() send.
        local: send nothing, and count values on this device; only the ledger shows them.
        strict: raise for mistakes of the app; otherwise they are outcomes, counted and logged.
        on_drop: called from the background with metric and reason of every discarded payload.
        public: public fields of this device, as {"os": "linux"}, for the bundle's breakdowns; or
            functions in place of texts, called at every report.
        ask_issuer: sends requests for tokens to the bundle's issuer; without it reports wait.
        persons: on a server, the visitors for whom `person()` reports.
    """

    def __init__(
        self,
        bundle: Bundle,
        state: State,
        transport: Transport,
        *,
        hold_seconds: float | None = 3600.0,
        strict: bool = True,
        disabled: bool = False,
        local: bool = False,
        max_epsilon: float = math.inf,
        on_drop: OnDrop | None = None,
        public: Public | None = None,
        coins: BitSource | None = None,
        clock: Clock = SYSTEM_CLOCK,
        ask_issuer: "AskIssuer | None" = None,
        persons: "Persons | None" = None,
    ) -> None:
        _check_parts(bundle, persons)
        self._bundle, self._state, self._transport = bundle, state, transport
        self._disabled, self._clock, self._persons = disabled, clock, persons
        self._unopened: Callable[[], State] | None = None
        self._closing, self._closed, self._is_complete = NoReentryLock(), False, False
        self._waiting_at_close: int | None = None
        self._diagnostics = Diagnostics(on_drop)
        self._mistakes = Mistakes(bundle, self._diagnostics, strict=strict)
        public_values = PublicValues(public)
        self._mistakes.refuse_missing(public_values.missing(bundle))
        timing: Any = {"clock": clock, "diagnostics": self._diagnostics}
        self._reporter = Reporter(
            bundle,
            state,
            coins or SystemBits(),
            clock.now,
            max_epsilon,
            public=public_values,
            local=local,
            diagnostics=self._diagnostics,
        )
        entering = Entering(self._reporter, state, Sealer(bundle), **timing)
        self._sender = Sender(self._reporter, state, bundle, entering, transport, **timing)
        locks = [self._reporter.lock, entering.sealer.lock]  # no thread is inside during a fork
        parts: list[Any] = [transport, state, *locks, self._reporter, self._sender]
        if bundle.tokens and not local:
            from hubbub.client.delivery.token_store import TokenStore  # noqa: PLC0415 as in person

            self._sender.tokens = TokenStore(bundle, state, ask_issuer, **timing)
            parts.append(self._sender.tokens.lock)
        if persons is not None:
            self._sender.is_withdrawn = persons.is_withdrawn
        self._background: Background | None = None
        if disabled:
            self._reporter.switch(on=False)
        if hold_seconds is not None and not disabled:
            waits = Waits(bundle, hold_seconds)
            self._background = Background(self._sender, transport, waits, **timing)
            self._background.wake()
            # At exit the client does not wait for an unreachable network.
            atexit.register(self._end)
        follow(self, [*parts, self._background, self._closing, self._diagnostics])

    @classmethod
    def from_bundle(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        operator: bytes | None = None,
        insecure: bool = False,
        on_drop: OnDrop | None = None,
        public: Public | None = None,
        account: Account | None = None,
        persons: "Persons | None" = None,
        **settings: Any,
    ) -> Self:
        """A client for the bundle in a file.

        If the state folder cannot be used, the client works in memory and logs it once. If the
        system or the installation prevents the start (an unreadable file, no sqlite3), a client
        that is not strict reports nothing, and logs why.

        Args:
            path: the bundle's file; overrides HUBBUB_BUNDLE.
            operator: required Ed25519 public key (32 bytes) of the operator, or of a former one.
                Without it the app trusts the first operator it meets, and then no other.
            insecure: no TLS; only for a shuffler on this machine.
            on_drop: as for `Client`.
            public: as for `Client`.
            account: at the bundle's token issuer: its key, which overrides HUBBUB_ACCOUNT; or a
                function that sends a request's bytes there, through the app's own server, and
                returns the answer's.
            persons: as for `Client`.
            **settings: app, state_dir, disabled, local, strict, shuffler, transport, relay,
                max_epsilon, hold_seconds, log; each overrides its variable (HUBBUB_APP, ...).

        Raises:
            BundleRefused: missing at `path`, altered, of another operator, older than one before,
                or asking for more than was promised; or strict, unreadable.
            BadParameter: an invalid argument; or strict, an invalid variable. Otherwise the client
                is disabled, and logs why; so it is if HUBBUB_BUNDLE names no readable bundle.
        """
        check_names(settings, cls.from_bundle)
        check_arguments(insecure=insecure, on_drop=on_drop, account=account)
        parts: Any = {"on_drop": on_drop, "persons": persons}
        start = partial(
            cls._start, path, settings, operator, account, insecure, public=public, **parts
        )
        try:
            try:
                return start()
            except RecursionError:
                return with_own_stack(start)
        except Exception as error:
            if not is_prevented(error, path) or is_strict(path, settings.get("strict")):
                raise
            reason = reason_of(error)
        warn("nothing is reported: %s", reason)
        nowhere, memory = transport_to(NO_BUNDLE.shuffler, roots=None), MemoryState()
        client = cls(
            NO_BUNDLE, memory, nowhere, hold_seconds=None, strict=False, disabled=True, **parts
        )
        client._unopened = partial(no_state, reason)
        return client

    @classmethod
    def _start(
        cls,
        path: str | os.PathLike[str] | None,
        settings: dict[str, Any],
        operator: bytes | None,
        account: Account | None,
        insecure: bool,  # noqa: FBT001 as from_bundle() passes it on
        **parts: Any,
    ) -> Self:
        from hubbub.client import startup  # noqa: PLC0415 importing hubbub.client loads no SQLite

        config, bundle, transport = startup.opened(path, settings, operator, insecure=insecure)
        ask_issuer = startup.issuer_of(bundle, config, account)
        client = cls(
            bundle,
            startup.state_of(bundle, config, operator),
            transport,
            hold_seconds=config.hold_seconds,
            strict=config.is_strict(development=bundle.development),
            disabled=config.disabled,
            local=config.local,
            max_epsilon=config.max_epsilon,
            ask_issuer=ask_issuer,
            **parts,
        )
        if config.disabled:
            enabled = replace(config, disabled=False)
            client._unopened = partial(startup.state_of, bundle, enabled, operator)
        return client

    def report(self, metric: str, value: Any = None) -> Outcome:
        """Randomize one value and queue it. No I/O; raises only in strict mode.

        Args:
            metric: name in the catalog.
            value: left out for activity and retention, and for them alone.

        Raises:
            UnknownMetric: strict, and the bundle has no such metric.
            ValueOutOfDomain: strict, and the metric has no such value; the message hides it.
        """
        try:
            return self._outcome_of(lambda: self._reporter.report(metric, value), metric, value)
        except RecursionError:
            if self._mistakes.strict:
                raise
            return _FAILED

    def person(self, name: str, *, public: Public | None = None) -> "Person":
        """One person for whom this app reports, with a secret, ledger and consent of their own.

        Args:
            name: what the app calls the person for ever, as the id of an account; it is stored as
                a keyed hash alone.
            public: public fields of this person, as for `Client`; None for the client's own.

        Raises:
            BadParameter: the client has no `persons`, or the bundle has tokens; or strict, and the
                name is no text, or `public` no mapping of texts.
        """
        # An app's start does not wait for what few apps, bundles and servers need.
        from hubbub.client.server_persons import Host  # noqa: PLC0415 as above

        notice()
        if self._persons is None:
            raise BadParameter("the client has no persons; give Client.from_bundle(persons=...)")
        host = Host(
            bundle=self._bundle,
            persons=self._persons,
            clock=self._clock,
            diagnostics=self._diagnostics,
            reporter=self._reporter,
            entering=self._sender.entering,
            outcome_of=self._outcome_of,
            mistakes=self._mistakes,
        )
        return host.person(name, public)

    def arm(self, experiment: str) -> str:
        """The arm of an experiment that the app shows on this device.

        It is drawn from the device's secret and stays until the secret is forgotten. If the person
        has opted out, it is the first arm; if the operator has stopped the arm, it is one that
        continues.

        Raises:
            UnknownMetric: strict, and the bundle has no such experiment; otherwise the arm is "".
        """
        notice()
        try:
            return self._reporter.arm(experiment)
        except UnknownMetric as error:
            if self._mistakes.strict:
                raise
            self._diagnostics.warn_once("arm", "arm() is used wrongly: %s", error)
            return ""

    def learn(self, model: str, features: Any, label: Any) -> Outcome:
        """Contribute one person's gradient to a model, in this device's own round.

        Until the state of that round is fetched, features and label wait in memory.

        Args:
            model: name in the catalog.
            features: a mapping by name, or all in order; numbers outside their range are clipped,
                and counted in `clipped`.
            label: what the model predicts.

        Raises:
            UnknownMetric: strict, and the bundle has no such model.
            ValueOutOfDomain: strict, and features or label do not fit; the message hides them.
        """
        learn = self._reporter.learn
        try:
            return self._outcome_of(lambda: learn(model, features, label), model, None)
        except RecursionError:
            if self._mistakes.strict:
                raise
            return _FAILED

    def flush(self, timeout: float = 10.0) -> bool:
        """Send what waits now, for at most `timeout` seconds; True if nothing is left.

        An example that waits for the state of its model stays.

        Raises:
            BadParameter: strict, and `timeout` is no number; otherwise it is 10.
        """
        try:
            check_stack()
            notice()
            return self._sender.flush(self._seconds(timeout), patient=True)
        except RecursionError:
            return False

    def close(self, timeout: float = 10.0) -> bool:
        """Flush, then stop for good; True if nothing was left for the next start or discarded.

        An example that waits for the state of its model is discarded.

        Raises:
            BadParameter: as for flush().
        """
        try:
            check_stack()
            return self._close(self._seconds(timeout), patient=True)
        except RecursionError:  # it is as open as before, and closes at exit
            return False

    def disable(self, *, forget: bool = False) -> None:
        """Opt out: stop at once in all processes, until enable(), and delete what waits.

        Args:
            forget: also delete the device's secret and its answers. Sums of the privacy loss stay,
                so that limits hold; current epochs stay reported.

        Raises:
            StateUnusable: this process has stopped, but the opt-out could not be stored: after a
                restart it would report again.
            BadParameter: the same, because `forget` is no boolean.
        """
        notice()
        self._reporter.switch(on=False)
        check_arguments(forget=forget)
        with limited_to(_STOP_SECONDS):
            self._sender.stop()
        last, dropped = self._reporter.forget()
        if last:
            with contextlib.suppress(StateUnusable):
                self._state.enter([], [], last)
        try:
            dropped += self._store_opt_out(forget=forget)
            self._reporter.refresh()
            self._sender.await_others(_STOP_SECONDS)
        finally:
            # PRIVACY: `on_drop` may close the client, so it is called after the decision is stored.
            self._diagnostics.drop(dropped)

    def enable(self) -> None:
        """Opt in again. Values reported meanwhile are not sent.

        Raises:
            StateUnusable: it could not be stored; the client stays off.
        """
        self._open_state().consent(on=True, forget=False, now=self._clock.now())
        self._reporter.refresh()
        self._reporter.switch(on=not self._disabled)
        self._sender.go_on()

    def prefer(self, max_epsilon: float | None, *, max_local: float | None = None) -> None:
        """Set the largest epsilon of a report that this person allows; None for that of the metric.

        Metrics with tiers report at the largest permitted tier; others above it do not report.

        Args:
            max_epsilon: largest epsilon that a metric may promise for a report.
            max_local: largest local epsilon of any report; a metric with a crowd is then compared
                with `max_epsilon` by its central epsilon. None for `max_epsilon`.

        Raises:
            BadParameter: a limit is no number from 0 on.
            StateUnusable: it could not be stored.
        """
        most = epsilon_limit(max_epsilon)
        local = most if max_local is None else epsilon_limit(max_local, "max_local")
        self._open_state().prefer(most, local)
        self._reporter.refresh()

    def ledger(self) -> "LedgerView":
        """Everything that left this device, and the rest of each budget, for the person to see.

        Raises:
            StateUnusable: the state cannot be read.
        """
        from hubbub.client.ledger_view import view  # noqa: PLC0415 few callers need it

        state = self._open_state()
        if self._reporter.pending() or self._reporter.is_local:  # to include the newest reports
            self._sender.entering.enter()
        return view(self._bundle, state.device_state(), state.payload_records(), self._clock.now())

    @property
    def waiting(self) -> int:
        """Number of payloads that wait to be sent, or waited at close(), as far as known."""
        notice()
        if self._waiting_at_close is not None:
            return self._waiting_at_close
        drawn = len(self._reporter.pending())
        with contextlib.suppress(StateUnusable):
            return self._state.waiting() + drawn
        return drawn

    @property
    def dropped(self) -> dict[str, int]:
        """Number of payloads that this process discarded, by reason."""
        notice()
        return dict(self._diagnostics.dropped)

    @property
    def clipped(self) -> dict[str, int]:
        """Number of values that learn() clipped to their range in this process, by model."""
        return dict(+self._diagnostics.clipped)

    @property
    def outcomes(self) -> dict[Outcome, int]:
        """Number of calls of report() in this process, by outcome."""
        return dict(self._diagnostics.outcomes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, as for a process that is started rather than forked."""
        raise TypeError(
            "a Client cannot be pickled or copied; make one in each process, with the same "
            "state_dir: they share the limits of their device"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        import asyncio  # noqa: PLC0415 an async caller has loaded it; others do not need it

        await asyncio.to_thread(self.close)

    def _outcome_of(self, report: Callable[[], Outcome], metric: str, value: Any) -> Outcome:
        """Report, count the outcome, and wake the sending thread if there is something to send."""
        outcome = _FAILED
        try:
            notice()
            if self._closed:
                return Outcome.CLOSED
            try:
                outcome = report()
            except Exception as error:  # noqa: BLE001 a strict client raises it again
                outcome = self._mistakes.outcome_of_failure(error, metric, value)
            self._diagnostics.outcomes[outcome] += 1
            if self._background and outcome in _WAKING:
                self._background.wake()
        except RecursionError:
            if self._mistakes.strict:
                raise
        return outcome

    def _store_opt_out(self, *, forget: bool) -> list[Dropped]:
        """Store the opt-out, retrying while other processes write; return what it discards."""
        for number in reversed(range(_NO_TRIES)):
            try:
                return self._open_state().consent(on=False, forget=forget, now=self._clock.now())
            except StateBusy:
                if not number:
                    raise
        return []

    def _open_state(self) -> State:
        """Return the device's state, which a disabled client opens only when it is first needed."""
        notice()
        if self._unopened:
            try:
                self._state, self._unopened = self._unopened(), None
            except BundleRefused as error:
                raise StateUnusable(f"no state of this bundle on this device: {error}") from error
        return self._state

    def _end(self) -> None:
        """Close as the program ends. Ctrl-C then leaves the rest for the next start, silently."""
        # Busy daemon threads of the app go on, and take 5 ms each whenever this one touches a file.
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_EXIT_SWITCH_SECONDS)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._close(_EXIT_SECONDS, patient=False)
        finally:
            sys.setswitchinterval(interval)

    def _seconds(self, timeout: float) -> float:
        # Most calls give a plain number, for which no other module is asked.
        return timeout if type(timeout) in {float, int} else self._mistakes.seconds(timeout)

    def _close(self, timeout: float, *, patient: bool) -> bool:
        notice()
        if self._sender.is_busy_here() or self._closing.is_ours():
            return self._is_complete
        # A thread that closes a client which another thread is closing waits for the same result.
        with self._closing.hold(min(max(0.0, timeout), threading.TIMEOUT_MAX)) as is_entered:
            if is_entered and not self._closed:
                self._end_for_good(timeout, patient=patient)
        return self._is_complete

    def _end_for_good(self, timeout: float, *, patient: bool) -> None:
        self._closed = True
        atexit.unregister(self._end)
        if not self._disabled:
            self._sender.flush(timeout, patient=patient)
        with limited_to(_STOP_SECONDS):
            self._sender.stop()
            if self._background:
                self._background.end()
            examples = self._reporter.stop()
            drawn = self._reporter.pending()
            unstored = self._state.unstored(drawn)
            waiting = len(drawn) - len(unstored)
            with contextlib.suppress(StateUnusable):
                waiting += self._state.waiting()
                self._is_complete = not (waiting or unstored or examples)
            self._waiting_at_close = waiting
            self._state.close()
            self._diagnostics.drop([*examples, *unstored])


def _check_parts(bundle: object, persons: object) -> None:
    if not isinstance(bundle, Bundle):
        raise BadParameter("bundle is not a Bundle; for a file: Client.from_bundle(PATH)")
    if persons is not None:
        from hubbub.client.server_persons import Persons  # noqa: PLC0415 as in Client.person

        if not isinstance(persons, Persons):
            raise BadParameter("persons is not of Persons; give Persons(store, key)")
