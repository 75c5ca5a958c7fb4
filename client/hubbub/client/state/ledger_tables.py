"""The secret, consent and ledger in a state's tables, under a checksum that shows damage.

All functions run inside a transaction of the caller. Everything that they read they also check.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from hubbub.client.ledger import FOREIGN, Account, forgotten, load_accounts
from hubbub.client.state.consent import Consent, agreed, forgotten_at
from hubbub.client.state.contract import DISABLED, OPERATOR_CHANGED
from hubbub.client.state.database import Damaged
from hubbub.client.state.device_state import DeviceState
from hubbub.client.state.payload_queries import (
    Rows,
    count,
    events,
    meta,
    purge,
    read_facts,
    set_meta,
)
from hubbub.client.state.secret import SECRET_BYTES
from hubbub.client.state.state_witness import StateMoment, merged
from hubbub.sealing.digests import sha256

# Facts that the checksum does not cover. Version 0.1 changes consent without a commit, so the
# checksum covers "said", the last consent that this version stored, instead. A notice has its own
# signature and arrives again; the shuffler refuses damaged tokens.
_UNCHECKED: Final = ("sum", "bundle", "notice", "tokens", "generation", "preference", "max_local")


def start(rows: Rows) -> None:
    """Gives a new file its secret and its name."""
    set_meta(
        rows,
        secret=os.urandom(SECRET_BYTES),
        state=os.urandom(8).hex(),
        commits=0,
        head=os.urandom(8).hex(),
        witnessed="",
        generation=0,
    )


def bring_up(rows: Rows) -> bool:
    """Adds what a file of version 0.1 lacks; returns whether that changed consent."""
    facts = read_facts(rows)
    if facts.get("head") is None:
        set_meta(rows, head=os.urandom(8).hex(), witnessed="")
    if _commit_and_checksum(facts)[0] != str(facts.get("commits")):
        update_checksum(rows)
        facts = read_facts(rows)
    now, before = _consent(facts), facts.get("said")
    if before == _consent_json(facts):
        return False
    # PRIVACY: it may also be damaged, so the stricter of both holds.
    generation, preference, *local = json.loads(str(before))
    consent = agreed(Consent(generation, preference, now.since, *local), now, ordered=False)
    if consent.generation != generation:
        purge(rows, DISABLED)
    commit(rows, **asdict(consent))
    update_checksum(rows)
    return True


def check(rows: Rows) -> StateMoment:
    """Returns the version for the witness. Raises Damaged if the checksum does not match.

    Version 0.1 writes neither checksum nor head, and does not update an existing checksum.
    """
    facts, ledger = read_facts(rows), _ledger(rows)
    moment = _moment(facts, _device_state(rows, facts, ledger))
    commits, checksum = _commit_and_checksum(facts)
    lost = not checksum and facts.get("head") is not None
    if lost or (commits == str(facts["commits"]) and checksum != _sum(facts, ledger)):
        raise Damaged(
            "the checksum of the ledger does not match; give a new state_dir", moment.consent
        )
    return moment


def update_checksum(rows: Rows) -> None:
    """Stores the checksum of a transaction's changes."""
    facts = read_facts(rows)
    facts["said"] = _consent_json(facts)
    summed = f"{facts['commits']}:{_sum(facts, _ledger(rows))}"
    set_meta(rows, said=facts["said"], sum=summed)


def device_state(rows: Rows) -> DeviceState:
    """Returns the device's state. Raises Damaged."""
    return _device_state(rows, read_facts(rows), _ledger(rows))


def _device_state(
    rows: Rows, facts: Mapping[str, Any], ledger: Sequence[tuple[str, str]]
) -> DeviceState:
    try:
        accounts = load_accounts({name: json.loads(account) for name, account in ledger})
        consent = _consent(facts)
        secret, commits = facts.get("secret"), facts.get("commits")
        if not (isinstance(secret, bytes) and len(secret) == SECRET_BYTES):
            raise ValueError("invalid secret")
        if not (type(commits) is int and commits >= 0):
            raise ValueError("invalid count")
        counts = rows.execute(
            "SELECT name, number FROM counts WHERE typeof(number) = 'integer'"
        ).fetchall()
    except FOREIGN as error:
        raise Damaged(
            "the ledger contains data that hubbub never wrote; give a new state_dir"
        ) from error
    return DeviceState(
        secret=secret,
        consent=consent,
        accounts=accounts,
        counts=Counter({name: number for name, number in counts if str(name).isprintable()}),
        events=Counter(events(rows)),
        notice=notice(facts),
    )


def notice(facts: Mapping[str, Any]) -> bytes:
    """Returns the newest notice of the operator, signed; empty for none."""
    signed = facts.get("notice")
    return signed if isinstance(signed, bytes) else b""


def state_moment(rows: Rows) -> StateMoment:
    """Returns the version for the witness. Raises Damaged."""
    facts = read_facts(rows)
    return _moment(facts, _device_state(rows, facts, _ledger(rows)))


def _moment(facts: Mapping[str, Any], device: DeviceState) -> StateMoment:
    return StateMoment(
        state=str(facts.get("state")),
        commits=facts["commits"],
        head=str(facts.get("head") or ""),
        accounts=device.accounts,
        consent=device.consent,
    )


def save(rows: Rows, accounts: Mapping[str, Account]) -> None:
    """Stores accounts, as one commit."""
    rows.executemany(
        "INSERT OR REPLACE INTO ledger VALUES (?, ?)",
        [(name, json.dumps(account.data())) for name, account in accounts.items()],
    )
    commit(rows)


def commit(rows: Rows, **facts: Any) -> None:
    """Starts a new version, which the witness must record next."""
    set_meta(rows, commits=meta(rows, "commits") + 1, head=os.urandom(8).hex(), **facts)


def adopt(rows: Rows, agreed: StateMoment) -> None:
    """Adopts the merge of this state and a witness.

    PRIVACY: spending under a lost state stays spent, and an opt-out stays an opt-out.
    """
    consent = agreed.consent or Consent()
    if consent.generation != meta(rows, "generation"):
        purge(rows, DISABLED)
    set_meta(rows, commits=agreed.commits)
    save(rows, agreed.accounts)
    set_meta(rows, state=agreed.state, **asdict(consent))


def inherit(rows: Rows, former: DeviceState) -> None:
    """Adopts the stricter values of this state and of `former`, another operator's."""
    own_state = device_state(rows)
    consent = agreed(former.consent, own_state.consent, ordered=False)
    if consent.generation != own_state.consent.generation:
        purge(rows, DISABLED)
    save(rows, merged(own_state.accounts, former.accounts))
    set_meta(rows, **asdict(consent))
    count(rows, [OPERATOR_CHANGED])


def part(rows: Rows) -> None:
    """Discards what waits or is drawn but not entered yet, since it is another operator's."""
    commit(rows, generation=meta(rows, "generation") + 2)
    purge(rows, OPERATOR_CHANGED)
    set_meta(rows, operators=(meta(rows, "operators") or 0) + 1)


def forget(rows: Rows, now: float) -> None:
    """Replaces secret and name, and keeps sums for limits; epochs at `now` stay reported."""
    facts = read_facts(rows)
    after, commits = forgotten_at(_consent(facts), now), facts["commits"]
    sums = forgotten(device_state(rows).accounts, after.since)
    for table in ("reports", "ledger", "counts", "journals", "events"):
        rows.execute(f"DELETE FROM {table}")  # noqa: S608 our own names
    set_meta(rows, tokens=b"")
    start(rows)
    # The count of commits continues, so that any copy of the former state counts as older.
    set_meta(rows, commits=commits)
    save(rows, sums)
    set_meta(rows, **asdict(after))


def _consent(facts: Mapping[str, Any]) -> Consent:
    preference, since = facts.get("preference"), facts.get("since")
    # Former versions stored no max_local; it equals the preference.
    local = facts.get("max_local")
    return Consent(
        facts["generation"], math.inf if preference is None else preference, since or 0.0, local
    )


def _consent_json(facts: Mapping[str, Any]) -> str:
    """Returns the person's decision, as the checksum covers it."""
    consent = _consent(facts)
    fields = [consent.generation, consent.preference]
    # In the form of former versions, if they can represent it.
    return json.dumps(fields if consent.local == consent.preference else [*fields, consent.local])


def _commit_and_checksum(facts: Mapping[str, Any]) -> tuple[str, str]:
    commits, _, checksum = str(facts.get("sum") or "").partition(":")
    return commits, checksum


def _ledger(rows: Rows) -> list[tuple[str, str]]:
    """Returns metrics and their accounts, as stored."""
    return rows.execute("SELECT metric, account FROM ledger ORDER BY metric").fetchall()


def _sum(facts: Mapping[str, Any], ledger: Sequence[tuple[str, str]]) -> str:
    summed = repr(([fact for fact in sorted(facts.items()) if fact[0] not in _UNCHECKED], ledger))
    return sha256(summed.encode(errors="replace")).hex()
