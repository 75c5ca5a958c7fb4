"""A version of what must outlive a state, as the state or its witness records it."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self

from hubbub.client.ledger import Account, load_accounts, merge
from hubbub.client.state.consent import Consent, agreed
from hubbub.sealing.digests import checksum

_MAX_MERGED: Final = 8
_MAX_COMMITS: Final = 1 << 62
_LONGEST_NAME: Final = 64


class StateMoment(NamedTuple):
    """A version of a state, without values and without the secret.

    Args:
        state: name of its history.
        commits: number of changes so far.
        head: random name of this version, since two copies may have the same number of changes.
        consent: None in a witness of version 0.1.
        merged: heads of other copies that were merged into this one.
    """

    state: str
    commits: int
    head: str
    accounts: Mapping[str, Account]
    consent: Consent | None
    merged: tuple[str, ...] = ()

    def document(self) -> bytes:
        """Returns the bytes of all but the responses, with a checksum."""
        consent = self.consent or Consent()
        body = {
            "state": self.state,
            "commits": self.commits,
            "head": self.head,
            "accounts": {
                name: replace(account, responses={}).data()
                for name, account in self.accounts.items()
            },
            "generation": consent.generation,
            "preference": None if math.isinf(consent.preference) else consent.preference,
            "since": consent.since,
            # Left out, as in former versions, if it equals the preference.
            **({"max_local": consent.local} if consent.local != consent.preference else {}),
            "heard": list(self.merged),
        }
        return json.dumps({**body, "sum": checksum(body)}).encode()

    @classmethod
    def load(cls, document: bytes) -> Self:
        """Reads what `document()` or version 0.1 wrote. Raises what `FOREIGN` lists for others."""
        body = json.loads(document)
        if body.keys() == {"state", "commits", "accounts"}:
            accounts = load_accounts(body["accounts"])
            return cls(
                state=_name(body["state"]),
                commits=_commits(body["commits"]),
                head="",
                accounts=accounts,
                consent=None,
            )
        if body.pop("sum") != checksum(body):
            raise ValueError("the checksum does not match")
        preference = math.inf if body["preference"] is None else body["preference"]
        return cls(
            state=_name(body["state"]),
            commits=_commits(body["commits"]),
            head=_name(body["head"]),
            accounts=load_accounts(body["accounts"]),
            consent=Consent(body["generation"], preference, body["since"], body.get("max_local")),
            merged=tuple(_name(head) for head in body["heard"]),
        )


def is_continued(moment: StateMoment, by: StateMoment, witnessed: str) -> bool:
    """Returns whether the state `by`, whose witness has `witnessed`, continues `moment`."""
    if moment.state != by.state:
        return False
    if not moment.head:  # written by version 0.1, which had no heads
        return moment.commits <= by.commits
    return moment.head in (by.head, witnessed)


def agree(moment: StateMoment, other: StateMoment) -> StateMoment:
    """Returns the combination of two versions, which allows no more than either."""
    if moment.head == other.head and moment.head:
        return moment
    ordered = moment.state == other.state and moment.commits != other.commits
    earlier, later = sorted((moment, other), key=lambda item: item.commits)
    consent = moment.consent or other.consent
    if earlier.consent and later.consent and other.head not in moment.merged:
        consent = agreed(earlier.consent, later.consent, ordered=ordered)
    return moment._replace(
        commits=later.commits,
        accounts=merged(moment.accounts, other.accounts),
        consent=consent,
        merged=tuple(dict.fromkeys([*moment.merged, *([other.head] if other.head else [])]))[
            -_MAX_MERGED:
        ],
    )


def merged(accounts: Mapping[str, Account], other: Mapping[str, Account]) -> dict[str, Account]:
    """Returns accounts that allow no more than either's, with the responses of the first."""
    return {
        name: merge(accounts.get(name, Account()), other.get(name, Account()))
        for name in accounts.keys() | other.keys()
    }


def _name(thing: Any) -> str:
    if not (isinstance(thing, str) and thing.isprintable() and len(thing) <= _LONGEST_NAME):
        raise ValueError("not a name")
    return thing


def _commits(thing: Any) -> int:
    if not (type(thing) is int and -1 <= thing < _MAX_COMMITS):
        raise ValueError("not a count")
    return thing
