"""Persons: a server reports for its visitors, each with a secret, a ledger and a consent.

A person's record is in a store that all processes and hosts of the app share, under a keyed hash:
the app's own database or Redis. Their sealed reports wait in the outbox of the app's own state,
beside the app's.

PRIVACY: a record is charged before its report can leave, and a report leaves only while the record
has the consent under which it was drawn. Who is killed between both has charged too much.
"""

import contextlib
import hmac
import inspect
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Final, Protocol, TypeVar

from hubbub.bundles import Bundle
from hubbub.catalog import closing_time
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.client.clock import Clock
from hubbub.client.delivery.sealing_into_outbox import Entering
from hubbub.client.ledger import FOREIGN, Account, load_accounts
from hubbub.client.ledger_view import LedgerView, view
from hubbub.client.mistakes_and_counters import Diagnostics, Mistakes
from hubbub.client.outcome import Outcome
from hubbub.client.public_field_values import Public, PublicValues
from hubbub.client.reporter import Reporter
from hubbub.client.settings import check_arguments, epsilon_limit
from hubbub.client.state.consent import Consent
from hubbub.client.state.contract import OutboxReport
from hubbub.client.state.device_state import DeviceState
from hubbub.client.state.memory import MemoryState
from hubbub.errors import BadParameter, StateBusy, StateUnusable, UnknownMetric
from hubbub.fields.frozen import frozen


class PersonStore(Protocol):
    """Where records are, by the keyed hash of a person. Both methods may raise anything."""

    def read(self, person: bytes) -> bytes | None:
        """The record of a person; None if there is none."""

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record durably if it is still `before`; returns whether it was."""


class SQLStore:
    """Records in a table of the app's own database, over any driver of DB-API 2.0.

    The table has the columns `person` and `record`, of bytes (BLOB, BYTEA, VARBINARY); `person` is
    its primary key.

    Args:
        connect: opens a connection, or takes it from a pool; it is closed after each call.
        placeholder: of an argument in the driver's SQL: "?" or "%s".
        table: its name.
    """

    def __init__(
        self, connect: Callable[[], Any], *, placeholder: str = "?", table: str = "hubbub_persons"
    ) -> None:
        if placeholder not in {"?", "%s"} or not table.isidentifier():
            raise BadParameter('placeholder is not "?" or "%s", or table is not a plain name')
        if not callable(connect) or hasattr(connect, "cursor"):  # sqlite3's connection is callable
            raise BadParameter('"connect" is not a function; give one that opens a connection')
        self._connect = connect
        words = {
            "read": f"SELECT record FROM {table} WHERE person = ?",  # noqa: S608 a plain name
            "add": f"INSERT INTO {table} (person, record) VALUES (?, ?)",  # noqa: S608 as above
            "change": f"UPDATE {table} SET record = ? WHERE person = ? AND record = ?",  # noqa: S608 as above
        }
        self._words = {name: sql.replace("?", placeholder) for name, sql in words.items()}

    def read(self, person: bytes) -> bytes | None:
        """The record of a person; None if there is none."""
        with contextlib.closing(self._connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(self._words["read"], (person,))
            row = cursor.fetchone()
            return bytes(row[0]) if row else None

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record if it is still `before`; returns whether it was."""
        with contextlib.closing(self._connect()) as connection:
            cursor = connection.cursor()
            if before is not None:
                cursor.execute(self._words["change"], (after, person, before))
                connection.commit()
                return bool(cursor.rowcount)
            try:
                cursor.execute(self._words["add"], (person, after))
                connection.commit()
            except Exception:
                connection.rollback()
                if self.read(person) is None:
                    raise
                return False  # another process has added it meanwhile
            return True


class RedisStore:
    """Records in the app's own Redis, which must keep them: `appendfsync always`, no eviction.

    Args:
        redis: a client of redis-py, also one with `decode_responses`.
        prefix: of each key.
    """

    _REPLACE: Final = (
        "if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end "
        "redis.call('SET', KEYS[1], ARGV[2]) return 1"
    )

    def __init__(self, redis: Any, *, prefix: bytes = b"hubbub:person:") -> None:
        if isinstance(redis, str) or inspect.iscoroutinefunction(redis.execute_command):
            raise BadParameter("redis is not a synchronous client of redis-py; give redis.Redis()")
        self._redis, self._prefix = redis, prefix

    def read(self, person: bytes) -> bytes | None:
        """The record of a person; None if there is none."""
        record = self._redis.execute_command("GET", self._prefix + person, NEVER_DECODE=[])
        return None if record is None else bytes(record)

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record if it is still `before`; returns whether it was."""
        place = self._prefix + person
        return bool(self._redis.eval(self._REPLACE, 1, place, before or b"", after))


Answer = TypeVar("Answer")
_KEY_BYTES: Final = 32
_HASH_BYTES: Final = 16
_TRIES: Final = 20  # each fails only because another process has changed the same person's record
_VERSION: Final = b"1"
# What records have in common, so that a short one is compressed, too. Never change it.
_COMMON: Final = (
    b'{"consent":[0,null,0,null],"events":[],"accounts":{"":{"spent":1.0,"central":1.0,"floor":-1,'
    b'"epochs":{"20000":1},"responses":{},"losses":{"20000":1.0},"days":{"20000":1.0}}}}'
)


class Persons:
    """The persons for whom an app acts.

    Args:
        store: of their records.
        key: 32 random bytes or more, the same in all processes and hosts and for all time. Without
            it nobody can tell whose a record is; with another one each person is a new one.
    """

    def __init__(self, store: PersonStore, key: bytes) -> None:
        if not (isinstance(key, bytes) and len(key) >= _KEY_BYTES):
            raise BadParameter(f"key of persons is not {_KEY_BYTES} bytes; use secrets.token_bytes")
        if not all(callable(getattr(store, name, None)) for name in ("read", "replace")):
            raise BadParameter(
                "store lacks the methods read and replace; give SQLStore, RedisStore or your own"
            )
        self._store, self._key = store, key

    def hash_of(self, name: str) -> bytes:
        """The keyed hash that stands for a person in the store. Raises BadParameter: no text."""
        if not (isinstance(name, str) and name):
            raise BadParameter("the name of a person is empty or not a text; give str(user.id)")
        return self._digest(b"name", name.encode(errors="surrogatepass"))[:_HASH_BYTES]

    def read(self, person: bytes) -> tuple[bytes | None, DeviceState]:
        """A person's record, and its state. Raises StateUnusable, also if the record is damaged."""
        record = self._ask(lambda: self._store.read(person))
        try:
            state = _load_state(record) if record is not None else DeviceState(secret=b"")
        except (*FOREIGN, zlib.error) as error:
            raise StateUnusable(
                "a person's record is damaged, so none of their reports are sent; deleting it "
                "forgets their limits and their opt-out"
            ) from error
        secret = self._digest(b"secret", person + repr(state.consent.since).encode())
        return record, replace(state, secret=secret)

    def replace(self, person: bytes, before: bytes | None, after: bytes) -> bool:
        """Store a record if it is still `before`. Raises StateUnusable."""
        return self._ask(lambda: self._store.replace(person, before, after))

    def is_withdrawn(self, report: OutboxReport) -> bool:
        """Whether a report's person has no record, or has said no since. Raises StateUnusable."""
        record, state = self.read(report.person)
        return record is None or state.consent.generation != report.generation

    def _digest(self, use: bytes, content: bytes) -> bytes:
        return hmac.digest(self._key, b"hubbub/1 person|" + use + b"|" + content, "sha256")

    def _ask(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except Exception as error:  # the app's own store may raise anything
            # Its text may have a password.
            raise StateUnusable(f"the store of persons fails: {type(error).__name__}") from error


@frozen(kw_only=True)
class Host:
    """What a client lends each person; `reporter` and `entering` are of the app's own device.

    `outcome_of` counts an outcome, and turns errors into outcomes unless strict.
    """

    bundle: Bundle
    persons: Persons
    clock: Clock
    diagnostics: Diagnostics
    reporter: Reporter
    entering: Entering
    outcome_of: Callable[[Callable[[], Outcome], str, Any], Outcome]
    mistakes: Mistakes

    def person(self, name: str, public: Public | None) -> "Person":
        """As `Client.person`."""
        if self.bundle.tokens:
            raise BadParameter(
                "the bundle's tokens are for one device; report from each person's own device"
            )
        person, public_values = None, None
        try:
            person = self.persons.hash_of(name)
            if public is not None:
                public_values = PublicValues(public)
        except BadParameter as error:
            self.mistakes.outcome_of(error, Outcome.NO_STATE)
        return Person(self, person, public_values)


@frozen()
class Person:
    """One person for whom an app on a server reports. Cheap to make: one for each request.

    Every call waits for the store. The server itself sees the value, and who reports it; hubbub
    hides both from all others.
    """

    host: Host
    person: bytes | None = field(repr=False)
    public: PublicValues | None = field(repr=False)

    def report(self, metric: str, value: Any = None) -> Outcome:
        """Randomize one value, charge this person, and queue the report; or NO_STATE."""
        return self.host.outcome_of(lambda: self._report(metric, value), metric, value)

    def arm(self, experiment: str) -> str:
        """This person's arm of an experiment, as `Client.arm`. Raises StateUnusable."""
        try:
            return self._change(lambda reporter, _: reporter.arm(experiment))
        except UnknownMetric as error:
            self.host.mistakes.outcome_of(error, Outcome.UNKNOWN_METRIC)
            return ""

    def disable(self, *, forget: bool = False) -> None:
        """This person's no, in all processes and hosts. What waits of them is not sent.

        Args:
            forget: also forget the person's secret and permanent answers; sums stay.

        Raises:
            StateUnusable: it could not be stored.
        """
        check_arguments(forget=forget)
        now = self.host.clock.now()
        self._change(lambda _, state: state.consent(on=False, forget=forget, now=now))

    def enable(self) -> None:
        """This person's yes. Raises StateUnusable."""
        now = self.host.clock.now()
        self._change(lambda _, state: state.consent(on=True, forget=False, now=now))

    def prefer(self, max_epsilon: float | None, *, max_local: float | None = None) -> None:
        """The largest epsilon that this person allows, as `Client.prefer`. Raises StateUnusable."""
        most = epsilon_limit(max_epsilon)
        local = most if max_local is None else epsilon_limit(max_local, "max_local")
        self._change(lambda _, state: state.prefer(most, local))

    def ledger(self) -> LedgerView:
        """What is left of this person's budgets; without payloads. Raises StateUnusable."""
        bundle, now = self.host.bundle, self.host.clock.now()
        return self._change(lambda _, state: view(bundle, state.device_state(), [], now))

    def _report(self, metric: str, value: Any) -> Outcome:
        app = self.host.reporter
        if not app.is_on:
            return Outcome.DISABLED
        try:
            if app.is_local:  # counts of all persons are the app's own; each one's no holds
                is_on = self._change(lambda reporter, _: reporter.is_on)
                return app.report(metric, value) if is_on else Outcome.DISABLED
            return self._change(lambda reporter, _: reporter.report(metric, value))
        except StateBusy:
            return Outcome.OVERFLOWED
        except StateUnusable as error:
            advice = "persons' reports are lost: %s; it must answer, have its table, return bytes"
            self.host.diagnostics.warn_once("persons", advice, error)
            return Outcome.NO_STATE

    def _change(self, work: Callable[[Reporter, MemoryState], Answer]) -> Answer:
        """Do something as this person's device; what follows is stored before it is returned."""
        host = self.host
        if self.person is None:
            raise StateUnusable("a person without a name has no record")
        for _ in range(_TRIES):
            record, device = host.persons.read(self.person)
            state = MemoryState(device=replace(device, notice=host.reporter.notice))
            reporter = host.reporter.of_person(state, self.public)
            answer = work(reporter, state)
            reporter.refresh()
            host.entering.of_person(reporter, state).enter()
            after = _dump_state(state.device_state(), host.bundle, host.clock.now())
            is_same = after == (record or _dump_state(DeviceState(secret=b""), host.bundle, 0))
            if is_same or host.persons.replace(self.person, record, after):
                host.entering.adopt([replace(e, person=self.person) for e in state.entries()])
                return answer
        raise StateBusy("other processes change this person's record all the time; try again")


def _load_state(record: bytes) -> DeviceState:
    """The state in a record, without the secret. Raises `FOREIGN`, zlib.error, StateUnusable."""
    if record[:1] != _VERSION:
        raise StateUnusable("a person's record is of a later version of hubbub; update this hubbub")
    document = json.loads(zlib.decompressobj(-15, _COMMON).decompress(record[1:]))
    generation, preference, since, local = document["consent"]
    allowed = [math.inf if epsilon is None else epsilon for epsilon in (preference, local)]
    return DeviceState(
        secret=b"",
        consent=Consent(generation, allowed[0], since, allowed[1]),
        accounts=load_accounts(document["accounts"]),
        events=Counter(
            {(str(m), int(epoch), str(what)): int(n) for m, epoch, what, n in document["events"]}
        ),
    )


def _dump_state(state: DeviceState, bundle: Bundle, now: float) -> bytes:
    """The record of a state, without what no limit needs any more."""
    accounts = {
        name: account.data()
        for name, account in sorted(_needed_accounts(state.accounts, bundle, now).items())
        if account.spent or account.epochs or account.filled
    }
    consent = state.consent
    preference, local = (
        None if epsilon == math.inf else epsilon for epsilon in (consent.preference, consent.local)
    )
    decisions = [consent.generation, preference, consent.since, local]
    events = [[*event, number] for event, number in sorted(state.events.items())]
    document = {"consent": decisions, "events": events, "accounts": accounts}
    packer = zlib.compressobj(9, wbits=-15, zdict=_COMMON)
    content = json.dumps(document, separators=(",", ":")).encode()
    return _VERSION + packer.compress(content) + packer.flush()


def _needed_accounts(
    accounts: Mapping[str, Account], bundle: Bundle, now: float
) -> dict[str, Account]:
    """Accounts without the epochs that are closed for good, where only running ones count."""
    for name, account in accounts.items():
        metric = bundle.metrics.get(name)
        shared = metric and metric.crowd and metric.crowd.period
        if metric is None or metric.report_on or shared or metric.model:
            continue
        if not isinstance(metric.value_kind, PastKind):
            closed = [e for e in account.epochs if closing_time(e, metric.epoch) <= now]
            account.close(max(closed, default=account.floor))
        if not (metric.caps.by_days or metric.caps.central_mu) and account.days:
            account.days = {max(account.days): sum(account.days.values())}
    return dict(accounts)
