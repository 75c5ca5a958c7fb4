"""Documents that a catalog needs before an app ships: drafts for the GDPR and the app stores.

Every statement comes from the catalog or from what the mechanisms prove, and names its source. What
neither contains is a `decision`: a responsible person, often a lawyer, must write it.
Articles are of Regulation (EU) 2016/679. The stores' identifiers are those of Apple's privacy
manifest and of the file that the Play Console's data-safety form exports and imports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from hubbub.authoring import Catalog
from hubbub.catalog import Metric, grace_seconds
from hubbub.catalog.values.past_kind import PastKind
from hubbub.privacy.card import Card, card
from hubbub.privacy.leaflet import leaflet, right_of_100
from hubbub.privacy.verdict import verdict

DECIDE: Final = "TO DECIDE"
_HIDDEN: Final = ("strong", "fair")
_STORE_FILES: Final = ("PrivacyInfo.xcprivacy", "google-play.csv")
_TYPE: Final = (
    "usage data (Apple: Product Interaction; Google: App interactions). Another type applies where "
    "a question is about health, money, place, contacts or the like; change the files then"
)


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
    privacy_card = card(catalog)
    draft = f'A draft, generated from the catalog. A person must complete what "{DECIDE}" marks.'
    return [
        Paper(
            "record-of-processing",
            "Record of processing activities (Article 30 GDPR)",
            draft,
            _record(catalog, privacy_card),
        ),
        Paper(
            "impact-assessment",
            "Data protection impact assessment (Article 35 GDPR)",
            draft,
            _assessment(catalog, privacy_card),
        ),
        Paper(
            "consent",
            "Text that asks people for consent (Articles 7 and 13 GDPR)",
            f"{draft} The other rows may be shown to people as they are.",
            _consent(catalog),
        ),
        Paper("stores", "Answers for the App Store and Google Play", draft, _stores(catalog)),
    ]


def store_files() -> dict[str, bytes]:
    """The app stores' files by name, about hubbub alone: merge them with those of the app."""
    folder = files("hubbub.privacy") / "store_files"
    return {name: (folder / name).read_bytes() for name in _STORE_FILES}


def _record(catalog: Catalog, privacy_card: Card) -> tuple[Statement, ...]:
    metrics = catalog.metrics.values()
    return (
        _decision("Controller, representative, data protection officer", "names and contacts"),
        *(
            Statement(
                f"Purpose: {metric.name}",
                f"{metric.description}; requested by {metric.owner}; until {metric.expires}.",
                f"metrics.{metric.name}: description, owner, expires",
            )
            for metric in metrics
        ),
        _decision("Categories of persons", "who uses the app; whether children are among them"),
        *_group_statements("Data", {metric.name: _data(metric) for metric in metrics}),
        *_recipients(catalog),
        _decision(
            "Servers that report for visitors",
            "whether a server of the app uses person(): it then sees values before they are "
            "randomized and from whom, and keeps budgets and consent under a keyed hash",
        ),
        _decision("Transfers to third countries", "where the shuffler and the aggregator run"),
        *_group_statements("Erasure", {metric.name: _erasure(metric) for metric in metrics}),
        Statement(
            "Erasure on the device",
            "It remembers its last payloads until the person deletes them.",
            "the client",
        ),
        *_erasure_of_events(catalog),
        _decision("Erasure from backups", "how long backups of the services are kept"),
        *_measures(catalog, privacy_card),
    )


def _assessment(catalog: Catalog, privacy_card: Card) -> tuple[Statement, ...]:
    metrics = catalog.metrics.values()
    year = privacy_card.together["year"]
    weak = [metric.name for metric in metrics if verdict(metric.report_loss) not in _HIDDEN]
    if verdict(year) not in _HIDDEN:
        weak.append("all answers of a year together")
    residual = (
        "Poorly hidden, or not at all, from a shuffler and an aggregator that work together and "
        f"link reports: {', '.join(weak)}."
        if weak
        else "All answers, of a year too, stay hidden even from all operators together."
    )
    return (
        Statement(
            "Description of the processing",
            "Each device changes its answer at random, encrypts it and sends it through a shuffler "
            "to an aggregator, which adds answers up and publishes estimates. No report contains a "
            "name, an address or a device id.",
            "the protocol",
        ),
        _decision("Necessity and proportionality", "why each question is needed for its purpose"),
        _decision(
            "Legal basis",
            "consent, or another basis of Article 6; for reading the device also the national law "
            "under Article 5(3) of Directive 2002/58/EC",
        ),
        _decision(
            "Are the reports personal data?",
            "a randomized answer without an identifier may be anonymous (Recital 26); the figures "
            "below help to decide this question",
        ),
        _decision("Special categories (Article 9)", "whether a question reveals any of them"),
        *(
            Statement(
                f"Risk: {metric.name}",
                f"Epsilon {metric.report_loss:.3f} a report: an observer who started from 50:50 is "
                f"right {right_of_100(metric.report_loss)} times in 100 at most after one answer "
                f"(protection: {verdict(metric.report_loss)}). For life at most "
                f"{metric.limits.lifetime_epsilon:g} nats.{_crowd_sentence(metric)}",
                f"metrics.{metric.name}: mechanism, epsilon, limits, central_epsilon",
            )
            for metric in metrics
        ),
        Statement(
            "Risk: all answers of a year",
            f"At most {year:.4g} nats (protection: {verdict(year)}), if one party links them; "
            f"{_link_sentence(catalog)}.",
            "epsilon, limits and caps of all metrics; breakdown, experiment",
        ),
        *_measures(catalog, privacy_card),
        Statement("Residual risk", residual, "mechanism and epsilon of all metrics"),
        _decision(
            "Prior consultation (Article 36)",
            "whether the residual risk is high" + (", as the row above suggests" if weak else ""),
        ),
        _decision(
            "Views of the data subjects and advice of the officer", "who was asked, and when"
        ),
    )


def _consent(catalog: Catalog) -> tuple[Statement, ...]:
    page = leaflet(catalog)
    return (
        _decision("Who asks", "name and contact of the controller, and of its officer"),
        *(
            Statement(
                "We would like to know",
                f"{metric.description}. An observer of one answer, who started from 50:50, is "
                f"right {right_of_100(metric.report_loss)} times in 100 at most. "
                f"Until {metric.expires}. Questions: {metric.owner}.",
                f"metrics.{metric.name}: description, epsilon, expires, owner",
            )
            for metric in catalog.metrics.values()
        ),
        *(
            Statement("How you are protected", sentence, "the protocol")
            for sentence in page.sentences
        ),
        Statement(
            "How much one year can reveal",
            f"{page.year}: an observer of all your answers of a year, who started from 50:50, is "
            f"right {page.year_right} times in 100 at most.",
            "epsilon, limits and caps of all metrics",
        ),
        _decision("Your rights", "access, erasure, objection, complaint: how, and to whom"),
        _decision("Buttons", "yes and no with equal weight; the app works the same after a no"),
    )


def _stores(catalog: Catalog) -> tuple[Statement, ...]:
    source = "the protocol"
    names = ", ".join(catalog.metrics)
    linked = "No: a report contains no name, address, account or device id."
    if catalog.tokens:
        linked += (
            f" The issuer of tokens, {catalog.tokens.issuer}, knows that an account requested them."
        )
    return (
        Statement("Is data collected?", f"Yes, randomized: {names}.", "names of all metrics"),
        _decision("Type of data", _TYPE),
        Statement("Purpose", "Analytics.", source),
        Statement("Apple: linked to the user?", linked, "the protocol, and tokens"),
        Statement("Apple: used for tracking?", "No: nothing joins it with other data.", source),
        Statement("Google: shared?", _shared_text(catalog), "runs"),
        Statement("Google: encrypted in transit?", "Yes: TLS, and sealed within.", source),
        Statement("Google: processed ephemerally?", "No: totals are stored.", source),
        Statement("Google: optional?", "Yes, where the app offers disable().", source),
        _decision("Google: can people request deletion?", "sent reports contain no identity"),
        _decision(
            "Files",
            "merge PrivacyInfo.xcprivacy with the app's own manifest, and the rows of "
            "google-play.csv with an export of the app's own form; both cover only hubbub",
        ),
    )


def _shared_text(catalog: Catalog) -> str:
    runs = catalog.runs
    if runs is None:
        return f"{DECIDE}: who runs the shuffler and the aggregator ([runs] of the catalog)."
    if runs.apart:
        return (
            f"{runs.shuffler} and {runs.aggregator} process it; it is not shared if both do so on "
            f"your behalf: {DECIDE}."
        )
    return f"No: {runs.aggregator} runs both services."


def _group_statements(subject: str, texts: Mapping[str, str]) -> Sequence[Statement]:
    """A statement for each different text of the metrics."""
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
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
    public = f"; in the clear beside it: {', '.join(metric.breakdown)}" if metric.breakdown else ""
    return f"A randomized answer ({content}; mechanism {metric.mechanism}), {frequency}{public}."


def _crowd_sentence(metric: Metric) -> str:
    """Sentence about the guarantee with an honest shuffler; "" without a central promise."""
    promise = metric.central
    if promise is None:
        return ""
    return (
        f" While the shuffler does not work with the aggregator: epsilon {promise.epsilon:g} at "
        f"delta {promise.delta:g}, {right_of_100(promise.epsilon)} times in 100."
    )


def _erasure(metric: Metric) -> str:
    retention_text = (
        f"{metric.keep} after their epoch" if metric.keep else "until an operator deletes them"
    )
    hours = grace_seconds(metric.epoch) / 3600
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


def _link_sentence(catalog: Catalog) -> str:
    """What reports contain that links them."""
    fields = sorted({field for m in catalog.metrics.values() for field in m.breakdown})
    if not fields:
        return "reports contain nothing that links them"
    return (
        f"reports contain no name; their public fields ({', '.join(fields)}) separate groups of "
        "devices; more fields make smaller groups"
    )


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


def _measures(catalog: Catalog, privacy_card: Card) -> Sequence[Statement]:
    metrics = catalog.metrics.values()
    fewest = min(metric.fewest for metric in metrics)
    caps = [f"{cap:g} nats a {span}" for span, cap in privacy_card.caps.items() if cap is not None]
    kems = sorted({metric.kem for metric in metrics})
    return [
        Statement(
            "Measure: randomization on the device",
            "Mechanisms "
            + ", ".join(sorted({metric.mechanism for metric in metrics}))
            + "; the loss is proven, and the device's ledger enforces the limits"
            + (f", and caps of {', '.join(caps)}." if caps else "; no cap on all metrics is set."),
            "mechanism, epsilon, limits, caps",
        ),
        Statement(
            "Measure: encryption",
            f"Sealed to the aggregator ({', '.join(kems)}), and TLS on every connection.",
            "kem",
        ),
        Statement(
            "Measure: a crowd",
            f"The shuffler passes on at least {fewest:,} reports of a metric together.",
            "min_batch",
        ),
        Statement(
            "Measure: control",
            "Every device shows what it sent, and an opt-out holds at once and after a restart.",
            "the client",
        ),
    ]


def _decision(subject: str, what: str) -> Statement:
    return Statement(subject, f"{DECIDE}: {what}.", DECIDE)
