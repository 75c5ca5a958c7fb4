"""What the state's tables say, inside a transaction that the caller holds."""

import json
import math
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hubbub.client.database import Damaged
from hubbub.client.device import SECRET_BYTES
from hubbub.client.ledger import Account, merge
from hubbub.client.state import DISABLED, HISTORY, SENT, Bounds, Dropped, Kept, Standing, excess
from hubbub.client.witness import Witness

__all__ = [
    "bury",
    "count",
    "done",
    "forget",
    "inherit",
    "kept",
    "leaving",
    "meta",
    "notice",
    "overflow",
    "part",
    "prune",
    "save",
    "set_meta",
    "settle",
    "standing",
    "start",
]

Rows = sqlite3.Connection


def meta(rows: Rows, name: str) -> Any:  # noqa: ANN401 each name has its own
    """One of the single facts; None if it is not there."""
    found = rows.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return found[0] if found else None


def set_meta(rows: Rows, **facts: Any) -> None:  # noqa: ANN401 as meta
    """Keep single facts."""
    rows.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())


def start(rows: Rows) -> None:
    """Give a new file its secret and its name."""
    if meta(rows, "secret") is None:
        set_meta(
            rows,
            secret=secrets.token_bytes(SECRET_BYTES),
            state=secrets.token_hex(8),
            commits=0,
            generation=0,
        )


def forget(rows: Rows, now: float) -> None:
    """Another secret and another name; nothing of what was. What runs at `now` stays reported."""
    for table in ("reports", "ledger", "counts", "journals"):
        rows.execute(f"DELETE FROM {table}")  # noqa: S608 our own names
    set_meta(rows, secret=None)
    start_again = {"generation": meta(rows, "generation")}
    start(rows)
    set_meta(rows, since=now, **start_again)


def standing(rows: Rows) -> Standing:
    """Where the device stands. Raises Damaged."""
    try:
        accounts = {
            name: Account.load(json.loads(account))
            for name, account in rows.execute("SELECT metric, account FROM ledger")
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged("the ledger holds what hubbub never wrote; give a new state_dir") from error
    preference = meta(rows, "preference")
    return Standing(
        secret=meta(rows, "secret"),
        generation=meta(rows, "generation"),
        preference=math.inf if preference is None else preference,
        since=meta(rows, "since") or 0.0,
        accounts=accounts,
        counts=Counter(dict(rows.execute("SELECT name, number FROM counts"))),
    )


def save(rows: Rows, accounts: Mapping[str, Account]) -> None:
    """Keep accounts; one commit more."""
    rows.executemany(
        "INSERT OR REPLACE INTO ledger VALUES (?, ?)",
        [(name, json.dumps(account.data())) for name, account in accounts.items()],
    )
    set_meta(rows, commits=meta(rows, "commits") + 1)


def done(rows: Rows, journal: str) -> int:
    """The number of the last payload of a process that was entered."""
    found = rows.execute("SELECT done FROM journals WHERE name = ?", (journal,)).fetchone()
    return found[0] if found else 0


def bury(rows: Rows, journal: str) -> None:
    """A process that ended has no more to enter, and sends nothing of what it took."""
    rows.execute("DELETE FROM journals WHERE name = ?", (journal,))
    rows.execute("UPDATE reports SET claimed = NULL WHERE claimer = ?", (journal,))


def count(rows: Rows, names: Iterable[str]) -> None:
    """Count what was given up, or what befell the state."""
    _change(rows, Counter(names))


def leaving(rows: Rows, now: float, claim_seconds: float) -> int:
    """How many reports were purged while a process had them in its hands, and may have still."""
    found = rows.execute(
        "SELECT count(*) FROM reports WHERE fate = ? AND abs(? - claimed) < ?",
        (DISABLED, now, claim_seconds),
    ).fetchone()
    return int(found[0])


def settle(rows: Rows, fates: Mapping[int, str]) -> None:
    """Give reports that wait their fate.

    Those that have one keep it; but what was purged while it was on its way, and arrived, is told
    as sent.
    """
    changes: Counter[str] = Counter()
    for id_, fate in fates.items():
        found = rows.execute("SELECT fate FROM reports WHERE id = ?", (id_,)).fetchone()
        if found and (found[0] is None or (found[0] == DISABLED and fate == SENT)):
            rows.execute("UPDATE reports SET fate = ?, sealed = NULL WHERE id = ?", (fate, id_))
            changes[fate] += 1
            changes[found[0] or fate] -= bool(found[0])
    del changes[SENT]
    _change(rows, changes)


def overflow(rows: Rows, bounds: Bounds) -> list[Dropped]:
    """Give up the oldest of too many that wait; but not what is on its way at this moment."""
    waiting = rows.execute(
        "SELECT id, stream, length(sealed) FROM reports"
        " WHERE fate IS NULL AND claimed IS NULL ORDER BY id"
    ).fetchall()
    gone = waiting[: excess([size for _, _, size in waiting], bounds)]
    rows.executemany(
        "UPDATE reports SET fate = 'outbox_full', sealed = NULL WHERE id = ?",
        [(id_,) for id_, _, _ in gone],
    )
    return [Dropped(stream, "outbox_full") for _, stream, _ in gone]


def kept(rows: Rows) -> list[Kept]:
    """The payloads of the past that are still remembered, oldest first."""
    found = rows.execute("SELECT stream, epoch, payload, made, fate FROM reports ORDER BY id")
    return [
        Kept(stream, epoch, payload, made, fate or "")
        for stream, epoch, payload, made, fate in found
    ]


def prune(rows: Rows) -> None:
    """Of payloads that have met their fate, remember the last."""
    rows.execute(
        "DELETE FROM reports WHERE fate IS NOT NULL AND id <= (SELECT id FROM reports"
        " WHERE fate IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (HISTORY,),
    )


def notice(rows: Rows, witness: Witness) -> None:
    """If the witness saw another state than this one, or a later one: charge what it knows.

    PRIVACY: what was spent under a state that is gone stays spent.
    """
    name, commits = meta(rows, "state"), meta(rows, "commits")
    if not witness.accounts or (witness.state == name and witness.commits <= commits):
        return
    now = standing(rows).accounts
    for metric, account in witness.accounts.items():
        now[metric] = merge(now.get(metric, Account()), account)
    set_meta(rows, commits=max(commits, witness.commits))
    save(rows, now)
    count(rows, ["state_rolled_back" if witness.state == name else "state_lost"])


def inherit(rows: Rows, former: Standing) -> None:
    """Allow no more than `former` does."""
    now = standing(rows)
    accounts = {
        metric: merge(now.accounts.get(metric, Account()), account)
        for metric, account in former.accounts.items()
    }
    save(rows, accounts)
    set_meta(
        rows,
        preference=min(now.preference, former.preference),
        since=max(now.since, former.since),
    )
    count(rows, ["operator_changed"])


def part(rows: Rows) -> None:
    """Send nothing that waits, or was drawn and is not entered yet: it is another operator's."""
    set_meta(rows, generation=meta(rows, "generation") + 2)
    waiting = rows.execute("SELECT id FROM reports WHERE fate IS NULL").fetchall()
    settle(rows, {id_: "operator_changed" for (id_,) in waiting})


def _change(rows: Rows, counts: Mapping[str, int]) -> None:
    rows.executemany(
        "INSERT INTO counts VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET number = number + excluded.number",
        list(counts.items()),
    )
