"""The privacy card of a catalog: what it promises a person, in figures, sentences and fields.

Every figure is an upper bound: from the mechanisms' proofs, the limits of the device's ledger, and,
after the shuffler, the smallest batch that is ever forwarded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, tanh
from typing import Final

from hubbub.analysis.families import family_for
from hubbub.authoring import Catalog, crowds_within, exposure
from hubbub.catalog import SPANS, Metric, days_of_period
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.errors.message_words import at_most, nats
from hubbub.fields.field import fields_of
from hubbub.privacy.amplification import ASSUMPTION, DELTA, Amplified, sampled
from hubbub.privacy.crowd_guarantees import all_epochs_sentence, crowds_of, rests_on, shuffled_of
from hubbub.privacy.epsilon_words_and_advice import advice, verdict
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.noisy_count_privacy import count_sentence

# Beginnings of the names of fields that promise a crowd, of which development keeps none.
_OF_CROWDS: Final = ("central_", "crowd", "count_", "dummies")


@dataclass(frozen=True, slots=True)
class Fact:
    """One field and its text: 1,000; day; os (linux, macos). `label` is its name for people."""

    field: str
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCard:
    """One metric's row. Epsilons are in nats.

    Args:
        sampling: probability that a device takes part in an epoch.
        sampled: of one report, for an observer who cannot see whether the device takes part.
        per_epoch: of all reports of an epoch.
        unchanged: of all reports ever of one unchanged value; None without a permanent response.
        lifetime_epsilon: limit at which the ledger stops.
        lifetime_central_epsilon: limit on the central promise; None without one.
        tiers: smaller epsilons that a person may choose.
        shuffled: of one report, for an observer who sees only shuffled batches.
        rests_on: what `shuffled` refers to, and what it requires.
        sentence: everything in words; `further` leaves out the sentence about one answer.
    """

    name: str
    description: str
    owner: str
    expires: str
    mechanism: str
    per_report: float
    reports_per_epoch: int
    sampling: float
    sampled: float
    epoch: str
    per_epoch: float
    unchanged: float | None
    lifetime_epsilon: float
    lifetime_central_epsilon: float | None
    tiers: tuple[float, ...]
    min_batch: int
    shuffled: Amplified
    rests_on: str
    sentence: str
    further: str
    verdict: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """All metrics, and what they reveal together about one person in a day, a month, a year.

    Args:
        unchanged: as `together`, if no value of the person changes.
        caps: limits of the catalog; central_cap: of all crowds in a year, as devices count them.
        central: of all metrics with a central promise, for an observer who sees whole epochs, at
            `delta`; None if there are none.
    """

    metrics: tuple[MetricCard, ...]
    together: Mapping[str, float]
    unchanged: Mapping[str, float]
    caps: Mapping[str, float | None]
    central: Mapping[str, float] | None
    central_cap: float | None
    delta: float
    assumption: str
    sentences: tuple[str, ...]
    verdicts: Mapping[str, str]
    advice: tuple[str, ...]


def card(catalog: Catalog, delta: float = DELTA) -> Card:
    """The card, with central figures at this delta."""
    metrics = list(catalog.metrics.values())
    epsilons = {
        span: sum(exposure(metric, days) for metric in metrics) for span, days in SPANS.items()
    }
    # Of a person whose value never changes: a permanent response bounds it.
    unchanged = {
        span: sum(min(exposure(metric, days), metric.lifetime_loss) for metric in metrics)
        for span, days in SPANS.items()
    }
    sentences = tuple(
        f"All answers of one person in a {span} together reveal at most {nats(total)}, "
        f"{at_most(unchanged[span], '.4g')} if no answer changes: {meaning(total)}"
        for span, total in epsilons.items()
    )
    central = _central(metrics, delta)
    if central:
        sentences += tuple(
            f"To an observer of whole shuffled epochs, all answers of one person in a {span} to "
            f"metrics with a central promise reveal at most {nats(total)} at delta {delta:g}."
            for span, total in central.items()
        )
    central_cap = catalog.caps.central_epsilon_per_year
    if central_cap is not None:
        sentence = (
            f"A device stops when all its crowds of a year can reveal {nats(central_cap, 6)} at "
            f"delta {catalog.caps.central_delta_per_year:g}, where it counts each crowd as a "
            "Gaussian that reveals at least as much."
        )
        sentences += (sentence,)
    if catalog.tokens:
        sentence = (
            "Reports carry tokens of an account, which the issuer signs blinded: neither the "
            "issuer nor the shuffler, nor both together, can link a token to its account. The "
            "issuer knows which accounts requested tokens."
        )
        sentences += (sentence,)
    return Card(
        metrics=tuple(metric_card(metric, delta) for metric in metrics),
        together=epsilons,
        unchanged=unchanged,
        caps={span: catalog.caps.of(span) for span in SPANS},
        central=central,
        central_cap=central_cap,
        delta=delta,
        assumption=ASSUMPTION,
        sentences=sentences,
        verdicts={span: verdict(total) for span, total in epsilons.items()},
        advice=advice(metrics),
    )


def _central(metrics: Sequence[Metric], delta: float) -> dict[str, float] | None:
    """Epsilon, per span, of all metrics with a central promise; None if there are none."""
    crowded = [metric for metric in metrics if metric.crowd]
    if not crowded:
        return None
    return {
        span: composed_epsilon(
            [
                crowd
                for metric in crowded
                for crowd in crowds_of(metric, crowds_within(metric, days))
            ],
            delta,
        )
        for span, days in SPANS.items()
    }


def max_posterior(epsilon: float) -> float:
    """Largest posterior probability for an observer with even odds before: e / (1 + e)."""
    return 1 / (1 + exp(-epsilon))


def max_belief_change(epsilon: float) -> float:
    """Largest change of any observer's belief, whatever it was before: tanh(epsilon / 4)."""
    return tanh(epsilon / 4)


def meaning(epsilon: float) -> str:
    """Explains an epsilon to a person: odds, and how far a belief can move."""
    odds = exp(min(epsilon, 700.0))
    form = ".3g" if odds < 1000 else ".0f"  # noqa: PLR2004 as people write it
    factor = f"{float(at_most(odds, form)):,.7g}"
    if odds > 1e6:  # noqa: PLR2004 beyond that nobody counts
        return "the odds about them may change by a factor of over a million, which hides nothing."
    if max_posterior(epsilon) > 0.9995:  # noqa: PLR2004 as its verdict
        return f"the odds about them change by a factor of {factor} at most, which hides nothing."
    return (
        f"the odds about them change by a factor of {factor} at most; starting from 50:50, an "
        f"observer is at most {at_most(100 * max_posterior(epsilon), '.4g')}% sure, and no belief "
        f"moves by more than {at_most(100 * max_belief_change(epsilon), '.4g')} percentage points."
    )


def public_fields(metric: Metric) -> list[str]:
    """The public fields of new answers, which name no arm of an experiment that has ended."""
    over = metric.experiment if metric.experiment and metric.experiment.is_over(()) else None
    return [field for field in metric.breakdown if not (over and field == over.name)]


def _report_sentences(metric: Metric, loss: float) -> str:
    """Sentences about who reports when, and in which crowd; `loss` is one sampled report's."""
    sentence = ""
    if metric.sampling < 1:
        sentence += (
            f" A device takes part with a chance of {metric.sampling:.4g}: to an observer who "
            f"cannot see whether it does, an answer reveals {nats(loss, 3)}."
        )
    if metric.report_on:
        days = len(days_of_period(metric.period, 0))
        frequency = "once a calendar month" if metric.period == "month" else f"once in {days} days"
        sentence += f" A device answers {frequency}, on a day drawn independently of the answer."
    if metric.tiers:
        tiers = ", ".join(f"{tier:g}" for tier in metric.tiers)
        sentence += f" A person may choose epsilon {tiers} instead."
    fields = public_fields(metric)
    if metric.experiment and metric.experiment.name in fields:
        sentence += (
            f" Each answer carries the device's arm of {metric.experiment.name}, which it draws "
            "once from its secret, independently of the person and the answers. The arm reveals "
            "nothing about the person, but it never changes, so an observer of addresses can "
            "separate devices of different arms: with several experiments, one group for each "
            "combination of arms."
        )
    if fields:
        sentence += (
            f" The shuffler and the aggregator see the {', '.join(fields)} of each "
            "answer, which hides only among answers with the same."
        )
    return sentence


def _bucket_sentence(metric: Metric, unchanged: float) -> str:
    """Sentence about all answers ever, if a device answers for its value's bucket; else ""."""
    buckets = family_for(metric.randomizer).lasting_buckets(metric.randomizer)
    if not buckets:
        return ""
    return (
        f" A device answers for one of {buckets} buckets of values, by a function that it keeps "
        "for life and shows: however many values a person had, all answers together reveal "
        f"{nats(buckets * unchanged)} at most about which they were; they may also show when "
        "these changed."
    )


def metric_card(metric: Metric, delta: float = DELTA) -> MetricCard:
    """The row of one metric."""
    shuffled = shuffled_of(metric, delta=delta)
    per_epoch = min(
        metric.limits.reports_per_epoch * metric.report_loss, metric.limits.lifetime_epsilon
    )
    unchanged = metric.lifetime_loss if isfinite(metric.lifetime_loss) else None
    loss = sampled(metric.report_loss, metric.sampling)
    sentence = ""
    if unchanged is not None:
        sentence += f" All answers together, while it does not change: {meaning(unchanged)}"
        sentence += _bucket_sentence(metric, unchanged)
    sentence += f" For life the device stops at {nats(metric.limits.lifetime_epsilon, 6)}."
    if isinstance(metric.value_kind, PastKind):
        sentence += (
            f" The device computes it from what happened in the {metric.epoch}, which it keeps, "
            "not randomized, until it has reported."
        )
    sentence += _report_sentences(metric, loss)
    if metric.central:
        most = metric.limits.lifetime_central_epsilon
        stops = "" if most is None else f" For life the device stops at {nats(most, 6)} of that."
        sentence += (
            f" Reports leave the shuffler {shuffled.reports:,} at a time or not at all: to an "
            f"observer of them, an answer reveals {nats(shuffled.epsilon, 3)} at delta "
            f"{shuffled.delta:g}, {shuffled.assumption}.{all_epochs_sentence(metric)}{stops} "
            "Estimates from them may be published as they are."
        )
        sentence += count_sentence(metric)
    if metric.filled:
        sentence += " A device with nothing to report sends a filler, known only to the aggregator."
    if metric.limits.reports_per_epoch > 1:
        sentence += " The figure after the shuffler is for one report, not for a whole epoch."
    return MetricCard(
        name=metric.name,
        description=metric.description,
        owner=metric.owner,
        expires=metric.expires.isoformat(),
        mechanism=metric.mechanism,
        per_report=metric.report_loss,
        reports_per_epoch=metric.limits.reports_per_epoch,
        sampling=metric.sampling,
        sampled=loss,
        epoch=metric.epoch,
        per_epoch=per_epoch,
        unchanged=unchanged,
        lifetime_epsilon=metric.limits.lifetime_epsilon,
        lifetime_central_epsilon=metric.limits.lifetime_central_epsilon,
        tiers=metric.tiers,
        min_batch=metric.fewest,
        shuffled=shuffled,
        rests_on=rests_on(metric, shuffled),
        sentence=f"One answer: {meaning(metric.report_loss)}{sentence}",
        further=sentence.strip(),
        verdict=verdict(metric.report_loss),
        facts=tuple(facts(metric)),
    )


def facts(metric: Metric) -> list[Fact]:
    """All labelled fields that differ from their default."""
    section: type = type(metric)
    facts = []
    for field in fields_of(section):
        # In development the minimum batch is 1.
        value = metric.fewest if field.name == "min_batch" else field.of(metric)
        if field.entry.label and not field.is_default(value):
            is_void = metric.development and field.name.startswith(_OF_CROWDS)
            text = f"{value:,}" if isinstance(value, int | float) else str(value)
            if isinstance(value, Mapping):
                text = ", ".join(f"{name} ({', '.join(values)})" for name, values in value.items())
            text += " (not under --dev)" if is_void else ""
            facts.append(Fact(field.name, field.entry.label, text))
    return facts
