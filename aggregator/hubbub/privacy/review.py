"""Ten claims about a catalog that a reviewer can check in an afternoon, and how to check each.

Every claim has a command that shows it, the proofs and tests that fail if it does not hold, what
it relies on, and what it assumes; claims.toml has their words. The figures are those of the card.
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from hubbub.authoring import Catalog
from hubbub.privacy.card import card
from hubbub.sealing.kems import X_WING


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim; `command` is typed in a terminal, `shown` names proofs and tests."""

    says: str
    command: str
    shown: tuple[str, ...]
    rests_on: str
    assumed: str


def claims(catalog: Catalog, path: str, demo: str = "") -> tuple[Claim, ...]:
    """The ten claims of a catalog, whose file commands name by `path`.

    `demo` is the folder that `hubbub demo --keep` left, if commands are about that.
    """
    facts = _facts(catalog) | {
        "path": path,
        "state": f" --state-dir {demo}/device" if demo else "",
        "home": f" --home {demo}" if demo else "",
    }
    table = tomllib.loads((files("hubbub.privacy") / "claims.toml").read_text("utf-8"))
    return tuple(
        Claim(
            says=entry["says"].format_map(facts),
            command=entry["command"].format_map(facts),
            shown=(*entry["shown"], *(entry.get("with_tokens", ()) if catalog.tokens else ())),
            rests_on=entry["rests_on"],
            assumed=entry["assumed"].format_map(facts),
        )
        for entry in table["claims"]
    )


def _facts(catalog: Catalog) -> dict[str, Any]:
    """What claims state of a catalog: figures of its card, and which metrics are protected how."""
    privacy_card, metrics = card(catalog), catalog.metrics.values()
    covered = ", ".join(metric.name for metric in metrics if metric.default is not None)
    sealed = ", ".join(metric.name for metric in metrics if metric.kem == X_WING)
    cap = privacy_card.caps["year"]
    return {
        "most": max(privacy_card.metrics, key=lambda metric: metric.per_report),
        "lowest": min(privacy_card.metrics, key=lambda metric: metric.min_batch),
        "year": privacy_card.together["year"],
        "cap": f", over all metrics at {cap:g} nats a year" if cap else "",
        "senders": "A sender has few accounts: the shuffler requires a token of an account."
        if catalog.tokens is not None
        else "A sender can send few fakes: the limit is per address, not per person.",
        "silence": f"For {covered} the shuffler cannot see whether a device had something to "
        "report; for any other metric here it can"
        if covered
        else "The shuffler can see for every metric here whether a device reported",
        "recording": f"a quantum computer cannot open recorded reports of {sealed}"
        if sealed
        else "a quantum computer could open recorded reports of every metric here",
    }
