"""Documents that a catalog needs before an app ships: drafts for the GDPR and the app stores.

Every statement comes from the catalog or from what the mechanisms prove, and names its source. What
neither contains is a `decision`: a responsible person, often a lawyer, must write it. papers.toml
has the words. Articles are of Regulation (EU) 2016/679. The stores' identifiers are those of
Apple's privacy manifest and of the file that the Play Console's data-safety form exports and
imports.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from hubbub.authoring import Catalog
from hubbub.catalog import GRACE_SECONDS, Metric
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.errors.message_words import nats
from hubbub.privacy.card import card, public_fields
from hubbub.privacy.epsilon_words_and_advice import verdict
from hubbub.privacy.leaflet_and_reviewer_claims import leaflet, right_of_100

DECIDE: Final = "TO DECIDE"
_HIDDEN: Final = ("strong", "fair")
_STORE_FILES: Final = ("PrivacyInfo.xcprivacy", "google-play.csv")


@dataclass(frozen=True, slots=True)
class Statement:
    """One row of a paper; `source` is the catalog field or proof behind it, or DECIDE."""

    subject: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Paper:
    """A document of statements; `purpose` states what it is for, and what it is not."""

    name: str
    title: str
    purpose: str
    statements: tuple[Statement, ...]


def papers(catalog: Catalog) -> list[Paper]:
    """All papers of a catalog."""
    draft = f'A draft, generated from the catalog. A person must complete what "{DECIDE}" marks.'
    table = tomllib.loads((files("hubbub.privacy") / "papers.toml").read_text("utf-8"))
    facts = _facts(catalog)

    def statements(rows: Sequence[Sequence[str]]) -> Iterator[Statement]:
        """The statements of a paper's rows, as papers.toml explains them."""
        for row in rows:
            match row:
                case ["measures"]:
                    yield from statements(table["measures"])
                case [part]:
                    yield from _PARTS[part](catalog)
                case [subject, question]:
                    yield _decision(subject, question.format_map(facts))
                case [_, _, source] if "{metric." in source:
                    for metric in catalog.metrics.values():
                        yield Statement(*(part.format_map(_facts_of(metric)) for part in row))
                case [subject, text, source]:
                    yield Statement(subject, text.format_map(facts), source)

    return [
        Paper(
            entry["name"],
            entry["title"],
            draft + entry.get("remark", ""),
            tuple(statements(entry["rows"])),
        )
        for entry in table["papers"]
    ]


def store_files() -> dict[str, bytes]:
    """The app stores' files by name, about hubbub alone: merge them with those of the app."""
    folder = files("hubbub.privacy") / "store_files"
    return {name: (folder / name).read_bytes() for name in _STORE_FILES}


def _facts(catalog: Catalog) -> dict[str, Any]:
    metrics, privacy_card = catalog.metrics.values(), card(catalog)
    year = privacy_card.together["year"]
    caps = [
        f"{nats(cap, 6)} a {span}" for span, cap in privacy_card.caps.items() if cap is not None
    ]
    weak = [metric.name for metric in metrics if verdict(metric.report_loss) not in _HIDDEN]
    if verdict(year) not in _HIDDEN:
        weak.append("all answers of a year together")
    residual = (
        "Poorly hidden, or not at all, from a shuffler and an aggregator that work together and "
        f"link reports: {', '.join(weak)}."
        if weak
        else "All answers, of a year too, stay hidden even from all operators together."
    )
    links, public = "reports contain nothing that links them", ""
    if fields := sorted({field for metric in metrics for field in public_fields(metric)}):
        links = (
            f"reports contain no name; their public fields ({', '.join(fields)}) separate groups "
            "of devices; more fields make smaller groups"
        )
        public = f" In the clear beside them: {', '.join(fields)}."
    runs = catalog.runs
    shared = f"{DECIDE}: who runs the shuffler and the aggregator ([runs] of the catalog)."
    if runs:
        shared = f"No: {runs.aggregator} runs both services."
    if runs and runs.apart:
        shared = (
            f"{runs.shuffler} and {runs.aggregator} process it; it is not shared if both do so on "
            f"your behalf: {DECIDE}."
        )
    issuer = ""
    if catalog.tokens:
        issuer = (
            f" The issuer of tokens, {catalog.tokens.issuer}, knows that an account requested them."
        )
    return {
        "year": year,
        "verdict_of_year": verdict(year),
        "links": links,
        "public": public,
        "residual_risk": residual,
        "is_high": ', as the row "Residual risk" suggests' if weak else "",
        "leaflet": leaflet(catalog),
        "names": ", ".join(catalog.metrics),
        "mechanisms": ", ".join(sorted({metric.mechanism for metric in metrics})),
        "caps": f", and caps of {', '.join(caps)}" if caps else "; no cap on all metrics is set",
        "kems": ", ".join(sorted({metric.kem for metric in metrics})),
        "fewest": min(metric.fewest for metric in metrics),
        "issuer": issuer,
        "shared": shared,
    }


def _facts_of(metric: Metric) -> dict[str, Any]:
    crowd = ""
    if promise := metric.central:
        crowd = (
            f" While the shuffler does not work with the aggregator: epsilon {promise.epsilon:g} "
            f"at delta {promise.delta:g}, {right_of_100(promise.epsilon)} times in 100."
        )
    fields = ", ".join(public_fields(metric))
    return {
        "metric": metric,
        "public": f" In the clear beside the answer: {fields}." if fields else "",
        "right": right_of_100(metric.report_loss),
        "verdict": verdict(metric.report_loss),
        "crowd": crowd,
    }


def _group_statements(
    subject: str, catalog: Catalog, text_of: Callable[[Metric], str]
) -> Sequence[Statement]:
    """A statement for each different text of the metrics."""
    names: dict[str, list[str]] = {}
    for metric in catalog.metrics.values():
        names.setdefault(text_of(metric), []).append(metric.name)
    return [
        Statement(
            f"{subject}: {', '.join(metric_names)}",
            text,
            ", ".join(f"metrics.{n}" for n in metric_names),
        )
        for text, metric_names in names.items()
    ]


def _data(metric: Metric) -> str:
    number = f"{len(metric.values or ()):,}"
    by_family = {"vector": f"{number} numbers together", "sets": f"any of {number} values together"}
    content = "text or numbers" if metric.values is None else f"one of {number} values"
    content = by_family.get(metric.value_kind.FAMILY or "", content)
    frequency = f"at most {metric.limits.reports_per_epoch} a {metric.epoch} and device"
    fields = ", ".join(public_fields(metric))
    public = f"; in the clear beside it: {fields}" if fields else ""
    return f"A randomized answer ({content}; mechanism {metric.mechanism}), {frequency}{public}."


def _erasure(metric: Metric) -> str:
    retention_text = (
        f"{metric.keep} after their epoch" if metric.keep else "until an operator deletes them"
    )
    hours = GRACE_SECONDS[metric.epoch] / 3600
    return (
        "Reports: the aggregator deletes them once it has added them up; the shuffler accepts none "
        f"later than {hours:,.3g} h after their {metric.epoch}. Totals: {retention_text}."
    )


def _erasure_of_events(catalog: Catalog) -> Sequence[Statement]:
    """What devices remember of events, if any metric is computed from them."""
    names = [m.name for m in catalog.metrics.values() if isinstance(m.value_kind, PastKind)]
    if not names:
        return []
    return [
        Statement(
            f"Erasure of events on the device: {', '.join(names)}",
            "It remembers what happened in an epoch, not randomized, until it reports on that "
            "epoch, the report would be too late, or the person opts out; it remembers in which "
            "epochs it reported until the person deletes that.",
            "kind, rate",
        )
    ]


def _recipients(catalog: Catalog) -> Sequence[Statement]:
    runs = catalog.runs
    if runs is None:
        return [_decision("Recipients", "who runs the shuffler and the aggregator ([runs])")]
    operators = "Only both together know who answered." if runs.apart else "One party runs both."
    return [
        Statement(
            "Recipients",
            f"{runs.shuffler} runs the shuffler, which sees addresses and no answer; "
            f"{runs.aggregator} runs the aggregator, which sees randomized answers and no address. "
            f"{operators}",
            "runs",
        ),
        _decision("Contracts", "processing on behalf (Article 28), or joint control (Article 26)"),
    ]


def _decision(subject: str, what: str) -> Statement:
    return Statement(subject, f"{DECIDE}: {what}.", DECIDE)


def _protection(catalog: Catalog) -> Sequence[Statement]:
    sentences = leaflet(catalog).sentences
    return [Statement("How you are protected", words, "the protocol") for words in sentences]


_PARTS: Final[Mapping[str, Callable[[Catalog], Sequence[Statement]]]] = {
    "data": lambda catalog: _group_statements("Data", catalog, _data),
    "erasure": lambda catalog: _group_statements("Erasure", catalog, _erasure),
    "events": _erasure_of_events,
    "recipients": _recipients,
    "protection": _protection,
}
"""Makes the rows of one word in papers.toml."""
