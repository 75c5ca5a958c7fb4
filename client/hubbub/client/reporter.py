"""The reporter: report() in the caller's thread checks the ledger, draws coins, notes the payload.

I/O: the journal only. Cryptography: hashing only. It waits only for other reporters.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from hubbub.bundles import Bundle, key_at
from hubbub.catalog import Metric, closing_time, epoch_at, epoch_start
from hubbub.catalog.discovery import spoken
from hubbub.catalog.experiments import experiment_named
from hubbub.catalog.payload_meanings import label_of
from hubbub.client.device_metric import AskedMetric, Questions
from hubbub.client.epochs_to_cover import FILLER, OF_THE_DEVICE, fills
from hubbub.client.event_count_reports import due, settled_epochs
from hubbub.client.learner import Learner
from hubbub.client.ledger import charge
from hubbub.client.mistakes_and_counters import Diagnostics, find_named, unreadable
from hubbub.client.outcome import Outcome
from hubbub.client.public_field_values import PublicValues
from hubbub.client.reentry_and_forks import NoReentryLock
from hubbub.client.state.contract import DISABLED, Dropped, PendingPayload, State
from hubbub.client.state.device_state import DeviceState, Event, own_count
from hubbub.client.state.secret import SECRET_BYTES
from hubbub.epochs import begins, holding
from hubbub.errors import StateUnusable, ValueOutOfDomain
from hubbub.mechanisms import BitSource

_LOCK_SECONDS: Final = 0.2  # no other thread holds the lock for long


class Reporter:
    """One process's copy of the device state, with the payloads that are not stored yet.

    Args:
        max_epsilon: largest epsilon of a report that the app allows; the person may allow less.
        local: only count values, for this device's person; draw and send nothing.
    """

    def __init__(
        self,
        bundle: Bundle,
        state: State,
        coins: BitSource,
        clock: Callable[[], float],
        max_epsilon: float = math.inf,
        *,
        public: PublicValues | None = None,
        local: bool = False,
        diagnostics: Diagnostics | None = None,
    ) -> None:
        self.is_local = local
        self._diagnostics = diagnostics or Diagnostics()
        self._local_counts: Counter[str] = Counter()
        self._bundle = bundle
        self._public = public or PublicValues()
        self._state = state
        self._coins = coins
        self._clock = clock
        self._max_epsilon = max_epsilon
        self.lock = NoReentryLock(_LOCK_SECONDS)
        self._drawn: list[tuple[int, PendingPayload]] = []
        self._device = DeviceState(secret=b"")
        self._questions = Questions(bundle, max_epsilon)
        self._events: Counter[Event] = Counter()
        self._learner = Learner(bundle.operator, bundle.models)
        self._off = self._consents = False
        try:
            self.refresh()
        except StateUnusable:  # nothing is drawn until the state can be read
            self._adopt_state(DeviceState(secret=bytes(SECRET_BYTES), may_send=False))

    @property
    def notice(self) -> bytes:
        """The signed notice of the operator that this device keeps; empty for none."""
        return self._device.notice

    def of_person(self, state: State, public: PublicValues | None) -> "Reporter":
        """Returns a reporter of a person's state, with this one's coins, clock and limits."""
        reporter = Reporter(
            self._bundle,
            state,
            self._coins,
            self._clock,
            self._max_epsilon,
            public=public or self._public,
            local=self.is_local,
            diagnostics=self._diagnostics,
        )
        reporter.switch(on=self.is_on)
        return reporter

    @property
    def is_on(self) -> bool:
        """Whether report() may draw."""
        return self._consents and not self._off

    def report(self, name: str, value: Any) -> Outcome:
        """Randomize one value and note it. Raises UnknownMetric or ValueOutOfDomain."""
        try:
            question = self._questions.now.get(name)
        except Exception:  # noqa: BLE001 an object of the app's in its place may raise anything
            question = None
        if question is None:
            # Not by a stream's name: the person chooses a tier, and `public` a cell.
            metrics = self._bundle.metrics
            definition = find_named("metric", metrics, lambda: metrics[name])
            return self._note_event(definition.name, value)
        metric = question.catalog_metric
        try:
            code = metric.code(value)
            text = spoken(metric, value) if metric.discover else ""
        except ValueOutOfDomain:
            raise
        except Exception as error:  # noqa: BLE001 the app's own may raise anything
            raise unreadable(f'metric "{name}"', error) from None
        if self.is_local:
            return self._count(name, text or label_of(metric, code))
        cell = self._cell(metric) if metric.breakdown else metric.name
        if self.lock.is_ours():  # a signal's handler reports in the middle of a report
            return Outcome.OVERFLOWED
        with self.lock.hold(_LOCK_SECONDS) as is_entered:
            if not is_entered:
                return Outcome.OVERFLOWED
            # The person's choices may have changed while another thread held the lock.
            return self._report(self._questions.now[name], code, cell, text=text)

    def arm(self, name: str) -> str:
        """This device's arm of an experiment; the first live arm if off. Raises UnknownMetric."""
        live = experiment_named(self._bundle.experiments, name).live_arms(self._stopped_names())
        if not (self.is_on and self._device.may_send):
            return live[0]
        arm = self._questions.arms[name]
        return arm if arm in live else live[0]

    def _cell(self, metric: Metric) -> str:
        """The breakdown cell (stream name without tier and list) for this device's reports."""
        experiment = metric.experiment
        if experiment is None or experiment.is_over(self._stopped_names()):
            return self._public.stream(metric, {})
        return self._public.stream(metric, {experiment.name: self.arm(experiment.name)})

    def _stopped_names(self) -> Collection[str]:
        """Names of everything that the operator's notice stops now."""
        notice = self._questions.notice
        return notice.stopped(self._clock()) if notice else ()

    def learn(self, name: str, features: Any, label: Any) -> Outcome:
        """Add one person's example to a model. Raises UnknownMetric or ValueOutOfDomain."""
        model = find_named("model", self._bundle.models, lambda: self._bundle.model(name))
        try:
            example = model.example(features, label)
        except ValueOutOfDomain as error:
            raise ValueOutOfDomain(f'model "{name}": {error}') from None
        except Exception as error:  # noqa: BLE001 the app's own may raise anything
            raise unreadable(f'model "{name}": features and label', error) from None
        if self.is_local:
            return self._count(name, "examples")
        replaced: list[Dropped] = []

        def add() -> Outcome:
            outcome = self._report(self._questions.now[name], example, name)
            replaced.extend(self._learner.settle(name, example, outcome))
            self._diagnostics.clipped[name] += example.clipped
            return outcome

        outcome = self._unless_busy(add)
        self._diagnostics.drop(replaced)  # outside the lock: the app may report there
        return outcome

    def _count(self, name: str, label: str) -> Outcome:
        """Count a value for this device's person. Nothing is drawn, charged or queued."""

        def count() -> Outcome:
            if not self.is_on:
                return Outcome.DISABLED
            self._local_counts[own_count(name, label)] += 1
            return Outcome.COUNTED

        return self._unless_busy(count)

    def _unless_busy(self, act: Callable[[], Outcome]) -> Outcome:
        """Return what `act` returns under the lock; OVERFLOWED while a report is being drawn."""
        if self.lock.is_ours():  # a signal's handler reports in the middle of a report
            return Outcome.OVERFLOWED
        with self.lock.hold(_LOCK_SECONDS) as is_entered:
            return act() if is_entered else Outcome.OVERFLOWED

    def _note_event(self, name: str, value: Any) -> Outcome:
        """Count an event, unless no report can follow from it."""
        metric = self._questions.past[name].catalog_metric
        kind: Any = metric.value_kind
        try:
            event: str = kind.event(metric, value)
        except ValueOutOfDomain as error:
            raise type(error)(f'metric "{name}": {error}') from None
        except Exception as error:  # noqa: BLE001 the app's own may raise anything
            raise unreadable(f'metric "{name}"', error) from None
        if self.is_local:
            return self._count(name, event)
        if kind.VALUELESS:
            event = self._cell(metric)
        return self._unless_busy(lambda: self._add_event(name, event))

    def _add_event(self, name: str, event: str) -> Outcome:
        question, now = self._questions.past[name], self._clock()
        if question.metric is None:
            return Outcome.DECLINED if self.is_on else Outcome.DISABLED
        epoch = question.epoch_of(now)
        # PRIVACY: an event that no report can follow from is not stored.
        refusal = (
            self._obstacle(question, question.metric, now, epoch)
            or question.skip_outcome(question.metric, epoch)
            or charge(self._device.accounts, question.metric, epoch, "", enter=False)
        )
        if refusal is not None:
            return refusal
        self._events[name, epoch, event] += 1
        return Outcome.NOTED

    def keep_events(self) -> None:
        """Move events into the state, and load those of all processes. An error leaves them."""
        if not self._questions.past or self.is_local:
            return
        with self._counts_to_store(self._events) as events:
            device = self._device
            settled_pairs = settled_epochs(self._questions.past, device, self._clock())
            self._adopt_state(
                self._state.count_events(events, settled_pairs, device.consent.generation)
            )

    def keep_own(self) -> None:
        """Move the counts of local mode into the state. After StateUnusable they stay in memory."""
        with self._counts_to_store(self._local_counts) as counts:
            if counts:
                self._state.count(counts)

    @contextlib.contextmanager
    def _counts_to_store(self, counts: Counter[Any]) -> Iterator[Counter[Any]]:
        """Empty counts for a block that stores them; they come back if it raises StateUnusable."""
        with self.lock.hold():
            moved_counts = Counter(counts)
            counts.clear()
        try:
            yield moved_counts
        except StateUnusable:
            with self.lock.hold():
                counts.update(moved_counts)
            raise

    @property
    def awaits_models(self) -> bool:
        """Whether examples wait for the state of their model."""
        return bool(self._learner.awaited)

    def hear_models(self, signed: bytes) -> None:
        """Load signed states of models, and draw the reports that waited. Raises ModelsRefused."""
        refused: list[Dropped] = []
        try:
            with self.lock.hold():
                try:
                    self._learner.hear(signed)
                finally:
                    for name, example in list(self._learner.awaited.items()):
                        outcome = self._report(self._questions.now[name], example, name)
                        refused += self._learner.settle(name, example, outcome)
        finally:
            self._diagnostics.drop(refused)

    def is_stopped(self, stream: str, epoch: int) -> bool:
        """Whether a notice has stopped sending reports of this stream and epoch."""
        metric, notice = self._bundle.streams.get(stream), self._questions.notice
        return bool(metric and notice and not notice.sampling(metric, epoch))

    def cover(self) -> None:
        """Draw reports of past epochs: defaults where the device ran, and values from events."""
        now = self._clock()
        with self.lock.hold():
            for question, metric in self._metrics_with_default():
                account = self._device.accounts[metric.base_name]
                running = epoch_at(now, metric.epoch)
                for epoch, reports in sorted(account.epochs.items()):
                    is_due = epoch < running and now < closing_time(epoch, metric.epoch)
                    if reports or epoch in account.filled or not is_due:
                        continue
                    default = metric.code(metric.default)
                    last = begins(epoch + 1, question.epoch_seconds) - 1
                    outcome = self._report(question, default, metric.base_name, last)
                    if (
                        outcome in OF_THE_DEVICE
                        and fills(self._bundle)
                        and self._obstacle(question, metric, last, epoch) is None
                        and account.fill(epoch)
                    ):
                        self._note(metric.stream, epoch, "", FILLER, self._clock())
            for question, code, cell, moment in due(self._questions.past, self._device, now):
                own_cell = cell or self._cell(question.catalog_metric)
                self._report(question, code, own_cell, moment)

    def running(self, moment: float) -> list[tuple[Metric, int]]:
        """Metrics with a default and their epoch at `moment`, if the ledger has no entry for it."""
        with self.lock.hold():
            return [
                (metric, epoch)
                for question, metric in self._metrics_with_default()
                for epoch in (holding(moment, question.epoch_seconds),)
                if self._device.accounts[metric.base_name].is_untouched(epoch)
            ]

    def _metrics_with_default(self) -> list[tuple[AskedMetric, Metric]]:
        """Metrics with a default for which this device reports, or sends fillers if it declines."""
        if self.is_local or not (self.is_on and self._device.may_send):
            return []
        return [
            (question, metric)
            for name, question in self._questions.now.items()
            if (metric := self._bundle.metrics[name]).default is not None
            and (question.metric is not None or fills(self._bundle))
        ]

    def pending(self) -> list[tuple[int, PendingPayload]]:
        """Payloads drawn but not yet entered in the state, with their numbers, oldest first."""
        return list(self._drawn)

    def drop_entered(self, upto: int) -> None:
        """Remove the payloads numbered up to `upto`, which the state now holds."""
        with self.lock.hold():
            self._drawn = [(number, drawn) for number, drawn in self._drawn if number > upto]

    def refresh(self, device: DeviceState | None = None) -> None:
        """Replace the copy of the state, by `device` if just read; an error leaves it."""
        self._adopt_state(device or self._state.device_state())

    def switch(self, *, on: bool) -> None:
        """Stop or resume drawing; a report that another thread is drawing ends first."""
        self._off = not on
        with self.lock.hold():  # a report being drawn ends before this returns
            pass

    def forget(self) -> tuple[int, list[Dropped]]:
        """Discard all that is drawn, noted or awaited.

        Returns the last payload's number, 0 without any, and what the caller has to count.
        """
        with self.lock.hold():
            drawn, self._drawn = self._drawn, []
            self._local_counts.clear()
            self._events.clear()
        dropped = [Dropped(report.stream, DISABLED) for _, report in drawn]
        return drawn[-1][0] if drawn else 0, [*dropped, *self._forget_examples(DISABLED)]

    def stop(self) -> list[Dropped]:
        """Stop drawing; discard the waiting examples, which the caller has to count."""
        self.switch(on=False)
        return self._forget_examples(Outcome.AWAITS_STATE.value)

    def _forget_examples(self, reason: str) -> list[Dropped]:
        with self.lock.hold():
            names = [*self._learner.awaited]
            self._learner.awaited.clear()
        return [Dropped(name, reason) for name in names]

    def after_fork_in_child(self) -> None:
        """After a fork, in the child: drop what was drawn or waits; the parent sends it."""
        self._drawn, self._local_counts, self._events = [], Counter(), Counter()
        self._learner.awaited.clear()

    def _adopt_state(self, device: DeviceState) -> None:
        with self.lock.hold():
            for _, drawn in self._drawn:
                metric = self._bundle.streams[drawn.stream]
                account = device.account(metric)
                if drawn.payload == FILLER:
                    account.fill(drawn.epoch)
                else:
                    account.add(metric, drawn.epoch, drawn.tag)
            for metric in self._bundle.metrics.values():
                device.account(metric)  # opens a missing account
            self._questions.follow(device)
            # Last: if a signal handler raises before this, the next call starts over.
            self._consents = device.is_on
            self._device = device

    def _report(
        self,
        question: AskedMetric,
        code: Any,
        cell: str,
        past_time: float | None = None,
        *,
        text: str = "",
    ) -> Outcome:
        """Charge and draw a report; `cell` lacks tier and list, `past_time` is in its epoch."""
        metric, now = question.metric, self._clock()
        if metric is None:
            return Outcome.DECLINED if self.is_on else Outcome.DISABLED
        moment = now if past_time is None else past_time
        epoch = question.epoch_of(moment)
        obstacle = self._obstacle(question, metric, moment, epoch)
        if obstacle is None and not question.is_asked_on(metric, epoch):
            obstacle = Outcome.NOT_ITS_ROUND if metric.model else Outcome.NOT_ITS_DAY
        obstacle = obstacle or question.skip_outcome(metric, epoch)
        if obstacle is not None:
            return obstacle
        suffix, teller = question.stream_suffix, None
        if question.finds and question.finder:
            metric, code = question.finder, text
            suffix = metric.name.removeprefix(metric.base_name)
        if metric.model:
            teller = self._learner.teller(metric, question.round, code)
        awaits = metric.model is not None and teller is None
        memo = question.memo
        tag = memo.tag(metric.memoized.permanent_key(code, memo)) if metric.memoized else ""
        # PRIVACY: the ledger is checked before any coin is drawn.
        refusal = charge(self._device.accounts, metric, epoch, tag, enter=not awaits)
        if refusal is not None or awaits:
            return refusal or Outcome.AWAITS_STATE
        if metric.memoized:
            payload = metric.memoized.randomize_again(code, memo, self._coins)
        elif teller is not None:
            payload = teller(self._coins)
        else:
            payload = metric.randomizer.randomize(code, self._coins)
        # The suffix adds the list of values and the tier to the cell.
        self._note(cell + suffix, epoch, tag, payload, now)
        return Outcome.QUEUED

    def _note(self, stream: str, epoch: int, tag: str, payload: bytes, made: float) -> None:
        generation = self._device.consent.generation
        drawn = PendingPayload(
            stream=stream, epoch=epoch, tag=tag, payload=payload, generation=generation, made=made
        )
        self._drawn.append((self._state.note(drawn), drawn))

    def _obstacle(
        self, question: AskedMetric, metric: Metric, now: float, epoch: int
    ) -> Outcome | None:
        """Why no report may be drawn at this moment, apart from the ledger; None if it may."""
        if self._off or not self._consents:
            return Outcome.DISABLED
        if not self._device.may_send:
            return Outcome.NO_STATE
        if now >= question.expires:
            return Outcome.EXPIRED
        if epoch != question.keyed:
            if key_at(self._bundle.keys, epoch_start(epoch, metric.epoch)) is None:
                return Outcome.NO_KEY
            question.keyed = epoch
        if not self._state.has_room(question.payload_bytes):
            return Outcome.OVERFLOWED
        return None
