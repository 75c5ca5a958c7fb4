"""Pages about a catalog: a leaflet for people who report, and ten claims for a reviewer.

Every claim has a command that shows it, the proofs and tests that fail if it does not hold, what
it relies on, and what it assumes; claims.toml has their words. The figures are those of the card.
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from math import ceil
from typing import Final

from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.errors.message_words import nats
from hubbub.privacy.card import card, max_posterior
from hubbub.privacy.epsilon_words_and_advice import verdict
from hubbub.sealing.hpke import X_WING

# Number that fits on a page; a sentence says that the others lose no more.
_MOST: Final = 10
_OFTEN: Final = {
    "minute": "every minute",
    "hour": "every hour",
    "day": "every day",
    "week": "every week",
    "28d": "every four weeks",
    "month": "every month",
}
_WORDS: Final = {
    "strong": "Well hidden",
    "fair": "Hidden",
    "weak": "Poorly hidden",
    "poor": "Hardly hidden",
    "hides nothing": "Not hidden",
}

_SENTENCES: Final = (
    (
        "Before an answer leaves your device, your device changes some answers by chance, so an "
        "answer need not be the true one. Only sums of many answers are published."
    ),
    (
        "Those who receive answers do not learn who sent them. Even if all operators worked "
        "together against you, a single answer would reveal no more than is written beside it."
    ),
    (
        "You can opt out at any time, in the app; waiting answers are deleted, and the opt-out "
        "stays. You can look at everything that was sent: hubbub ledger."
    ),
)
"""What holds of every catalog, as people say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafletRow:
    """One metric; who sees an answer is `right` so many times of 100 at most, 50 by guessing."""

    asks: str
    frequency: str
    verdict: str
    right: int
    until: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaflet:
    """The page; `unlisted` questions do not fit on it, `year` is the verdict on a whole year."""

    questions: tuple[LeafletRow, ...]
    unlisted: int
    year: str
    year_right: int
    sentences: tuple[str, ...]


def leaflet(catalog: Catalog) -> Leaflet:
    """The page of a catalog, with the most revealing questions first."""
    privacy_card = card(catalog)
    metrics = sorted(catalog.metrics.values(), key=lambda metric: -metric.report_loss)
    year = privacy_card.together["year"]
    covered = [metric.description for metric in metrics if metric.default is not None]
    sentences = list(_SENTENCES)
    if covered:
        sentences.append(
            "A device without an answer sends one too, so that silence reveals nothing, for: "
            + "; ".join(covered)
            + "."
        )
    if past_metrics := [m.description for m in metrics if isinstance(m.value_kind, PastKind)]:
        sentences.append(
            "Your device remembers what you did until its one answer of a day, week or month; "
            "then, or if you opt out, it deletes that. It remembers on which days or weeks it "
            "answered until you delete everything. This applies to: "
            + "; ".join(past_metrics)
            + "."
        )
    if crowds := [(metric, metric.central) for metric in metrics if metric.central]:
        most = max(right_of_100(promise.epsilon) for _, promise in crowds)
        rare = max(promise.delta for _, promise in crowds)
        sentences.append(
            "Some answers are counted only mixed with those of many others, or not at all. As long "
            "as the party that mixes them and the party that counts them do not work together, an "
            f"observer of them is right {most} times in 100 at most, except for one chance in "
            f"{1 / rare:,.0f}: " + "; ".join(metric.description for metric, _ in crowds) + "."
        )
    if descriptions := [metric.description for metric in metrics if metric.discover]:
        sentences.append(
            "Some devices report a value that is on no list, under the same protection, for: "
            + "; ".join(descriptions)
            + "."
        )
    return Leaflet(
        questions=tuple(_question(metric) for metric in metrics[:_MOST]),
        unlisted=max(0, len(metrics) - _MOST),
        year=_WORDS[verdict(year)],
        year_right=right_of_100(year),
        sentences=tuple(sentences),
    )


def _question(metric: Metric) -> LeafletRow:
    frequency = _OFTEN[metric.epoch]
    if metric.limits.reports_per_epoch > 1:
        frequency = f"up to {metric.limits.reports_per_epoch} times {frequency}"
    if metric.report_on:
        frequency = "on one day of a longer time"
    if metric.model:
        times = metric.model.reports
        frequency = "once for life, at a time that your device draws"
        if times > 1:
            frequency = f"{times} times in all, at times that your device draws"
    if metric.sampling < 1:
        frequency += ", some devices only"
    return LeafletRow(
        asks=metric.description,
        frequency=frequency,
        verdict=_WORDS[verdict(metric.report_loss)],
        right=right_of_100(metric.report_loss),
        until=metric.expires.isoformat(),
        owner=metric.owner,
    )


def right_of_100(epsilon: float) -> int:
    """Largest number of times, of 100, that an observer is right; rounded up."""
    return ceil(100 * max_posterior(epsilon))


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
    privacy_card, metrics = card(catalog), catalog.metrics.values()
    covered = ", ".join(metric.name for metric in metrics if metric.default is not None)
    sealed = ", ".join(metric.name for metric in metrics if metric.kem == X_WING)
    cap = privacy_card.caps["year"]
    facts = {
        "most": max(privacy_card.metrics, key=lambda metric: metric.per_report),
        "lowest": min(privacy_card.metrics, key=lambda metric: metric.min_batch),
        "year": privacy_card.together["year"],
        "cap": f", over all metrics at {nats(cap, 6)} a year" if cap else "",
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
