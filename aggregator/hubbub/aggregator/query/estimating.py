"""Computes from totals: estimates, their plausibility, and what one report reveals.

A metric's plan is what applies to all of its answers, decided once when a bundle is opened.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Final, Self, TypeVar

from hubbub.aggregator.query.epoch_range import NEWEST, EpochRange
from hubbub.aggregator.query.totals import SelectedTotals
from hubbub.analysis.answer import CONFIDENCE, Answer, ValueAnswer
from hubbub.analysis.answering import answer_lists, likely
from hubbub.analysis.comparisons.change import Change
from hubbub.analysis.families import family_for
from hubbub.analysis.families.contract import Family, Plausibility
from hubbub.analysis.families.tiers_and_rows import with_reports
from hubbub.analysis.percentiles import PERCENTILES, check_percentiles
from hubbub.analysis.ranks import Ranks, ranks_of
from hubbub.analysis.uncertainty.intervals import anytime_confidence
from hubbub.analysis.value_estimates import Mean
from hubbub.authoring.crowds.accountant import expected_dummies, named_dummies
from hubbub.catalog import Metric, reports_of_one
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.catalog.values.value_kind import OTHER
from hubbub.errors import BadParameter
from hubbub.privacy.amplification import Amplified
from hubbub.privacy.crowd_guarantees import shuffled_of
from hubbub.runtime.version import VERSION

Row = TypeVar("Row", ValueAnswer, Change)
OfNumbers = TypeVar("OfNumbers", ValueAnswer, Mean)


@dataclass(frozen=True, slots=True)
class Page:
    """Selected rows: all from `first` on, or `number` of them.

    Args:
        order: "listed"; "rank", the largest first; or a field, with "-" before it for the largest
            first.
        find: only values whose name contains this text, in any case.
    """

    first: int = 0
    number: int | None = None
    order: str = "listed"
    find: str = ""

    def of(self, rows: Sequence[Row], rank: str) -> tuple[list[Row], int]:
        """Rows of this page, ranked by the field `rank`, and the number on all pages.

        Raises BadParameter for an order by a field that these rows do not have.
        """
        text = self.find.casefold()
        matches = [row for row in rows if text in row.value.casefold()] if text else list(rows)
        field = self.order.removeprefix("-")
        if field == "rank":
            if matches and getattr(matches[0], rank) is not None:  # means have none
                matches.sort(key=attrgetter(rank), reverse=self.order != field)
        elif field != "listed":
            if not all(hasattr(row, field) for row in matches):
                raise BadParameter(
                    f"order {self.order}: these rows have no {field}; order by another field"
                )
            # Some figures of a mean are unknown; those rows sort last when the largest come first.
            keys = [(getattr(row, field) is not None, getattr(row, field)) for row in matches]
            places = sorted(range(len(keys)), key=keys.__getitem__, reverse=self.order != field)
            matches = [matches[place] for place in places]
        end = None if self.number is None else self.first + self.number
        return matches[self.first : end], len(matches)


WHOLE: Final = Page()


# A value of an answer needs about 200 bytes, a number 8.
_NUMBERS_A_VALUE: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateQuery:
    """A question: epochs, confidence, and the candidates of a metric over strings.

    Args:
        lists: names of saved lists, in addition to the candidates.
        anytime: whether intervals hold at every look while the epochs fill.
        likely: also return likely strings; the share, in (0, 1), of them that nobody holds, at
            most; 0 for none.
        percentiles: of numbers, in (0, 100); empty for the metric's, or the usual ones.
        below: numbers for which the share below is requested.

    Raises:
        BadParameter: a candidate that no device could report; likely strings with candidates; an
            invalid percentile; percentiles with `anytime`.
    """

    range: EpochRange = NEWEST
    confidence: float = CONFIDENCE
    candidates: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    anytime: bool = False
    likely: float = 0.0
    percentiles: tuple[float, ...] = ()
    below: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Checks candidates, percentiles, and combinations."""
        if self.percentiles:
            object.__setattr__(self, "percentiles", check_percentiles(self.percentiles))
        if self.anytime and (self.percentiles or self.below):
            raise BadParameter(
                'intervals of percentiles are valid for one look only: leave "anytime" out, or '
                '"percentile" and "below"'
            )
        if self.likely and (self.candidates or self.lists):
            raise BadParameter(
                'likely strings are found without candidates: leave out "likely" or "candidates"'
            )
        try:
            for candidate in self.candidates:
                candidate.encode()
        except UnicodeEncodeError as error:
            raise BadParameter("a candidate contains an invalid character") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeEstimate:
    """The estimates of a range of epochs.

    Args:
        updated: time of the last counted report; 0 if unknown.
        shuffled: central privacy of the actual batches.
        promised: central privacy of the smallest permitted batch.
        size: memory of the answer, in numbers of values.
        ranks: of the reporters; None without parts.
        population: of the population; None without parts.
    """

    answer: Answer
    plausibility: Plausibility
    shuffled: Amplified | None
    promised: Amplified
    updated: int
    size: int
    ranks: Ranks | None = None
    population: Ranks | None = None


# Digits after the point of a loss that answers contain: 4, not 3.9999999999963656.
_DIGITS: Final = 9


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerPlan:
    """A metric, and what every answer about it would otherwise decide again.

    Args:
        family: how its mechanism answers.
        names: of an answer's rows; None for cells and numbers, which the family names, and for
            strings, which a query names.
        epsilon: proven loss of one report, in nats, rounded up.
    """

    metric: Metric
    family: Family
    names: Sequence[str] | None
    epsilon: float

    @classmethod
    def of(cls, metric: Metric) -> Self:
        """The plan of a metric, or of one of its tiers or cells."""
        return cls(
            metric=metric,
            family=family_for(metric.randomizer),
            names=None if metric.parts else metric.values,
            epsilon=stated_epsilon(metric),
        )

    @cached_property
    def definition(self) -> str:
        """Text that differs between programs, and between bundles with other definitions."""
        return repr((VERSION, self.metric))


def stated_epsilon(metric: Metric) -> float:
    """The proven loss of one report of a metric, in nats, rounded up."""
    rounded = round(metric.report_loss, _DIGITS)
    return rounded if rounded >= metric.report_loss else round(rounded + 10**-_DIGITS, _DIGITS)


def estimate_range(
    plan: AnswerPlan, selected: SelectedTotals, query: EstimateQuery
) -> RangeEstimate:
    """Estimates, their plausibility and amplification, from the totals of some epochs' windows."""
    metric = plan.metric
    repeats = reports_of_one(metric, selected.selection.epochs)
    if metric.grown:
        values, parts = metric.values or (), [*selected.by_list()][::-1]
        lists = [(part.tiers(), len(part.metric.values or ())) for part in parts]
        tiers = [tier for list_tiers, _ in lists for tier in list_tiers]
        other = values.index(OTHER) if metric.other else None
        answer_at = partial(answer_lists, lists, values, other=other)
    else:
        tiers = selected.tiers()
        names = plan.names or plan.family.row_names(
            metric.randomizer, metric.values, query.candidates
        )
        live_tiers = with_reports(tiers) if metric.tiers else tiers
        answer_at = partial(plan.family.answer, live_tiers, names)
    answer = answer_at(confidence=query.confidence, repeats=repeats)
    if query.anytime:
        surer = answer_at(confidence=_confidence_at_every_look(metric, answer), repeats=repeats)
        answer = replace(surer, confidence=query.confidence)
    if metric.rate:
        rows = tuple(clip_to_range(metric, answer.values))
        answer = replace(answer, values=rows, span=number_range(metric))
    if query.likely:
        answer = replace(answer, likely=likely(tiers, answer, query.likely))
    ranks = population = None
    size = len(answer.values)
    if metric.edges or metric.values is None:  # of a range
        of = tiers, metric.edges, repeats, metric.value_kind.LEAST
        ranks, population = ranks_of(*of), ranks_of(*of, population=True)
        if ranks and population:
            size += (ranks.size + population.size) // _NUMBERS_A_VALUE
    return RangeEstimate(
        answer=answer,
        plausibility=plan.family.plausibility(tiers, repeats),
        shuffled=_weakest_guarantee(selected),
        promised=shuffled_of(metric),
        updated=max(map(attrgetter("at"), selected.by_window.values())),
        size=size,
        ranks=ranks,
        population=population,
    )


def ranks_for(metric: Metric, query: EstimateQuery, ranks: Ranks | None) -> Ranks | None:
    """The ranks, if any. Raises BadParameter if there are none, and the query needs them."""
    if ranks is None and (query.percentiles or query.below):
        remedy = ', or give the number edges, or mechanism = "wave" or "haar"'
        if isinstance(metric.value_kind, PastKind):
            remedy = f"; it has figures: hubbub figures {metric.name}"
        elif number_range(metric) is None:
            remedy = "; only numbers have percentiles, other values have shares"
        raise BadParameter(
            f'metric "{metric.name}" has no ranges from which percentiles are computed; '
            f'leave "{"percentile" if query.percentiles else "below"}" out{remedy}'
        )
    return ranks


def percentiles_for(metric: Metric, query: EstimateQuery) -> tuple[float, ...]:
    """The percentiles of the query, else of the metric's catalog, else the usual ones."""
    return query.percentiles or metric.percentiles or PERCENTILES


def number_range(metric: Metric) -> tuple[float, float] | None:
    """The range of reported numbers; None if the metric has no numbers."""
    if metric.model:
        return None
    if metric.edges:
        return metric.edges[0], metric.edges[-1]
    if metric.rate:  # its mechanism takes any vector of this length
        return 0.0, float(metric.rate.most)
    return family_for(metric.randomizer).ends(metric.randomizer)


def clip_to_range(metric: Metric, means: Iterable[OfNumbers]) -> list[OfNumbers]:
    """The means, or shares; the counts of a rate with intervals inside their range."""
    if not metric.rate:
        return list(means)
    low, high = 0.0, float(metric.rate.most)
    return [
        replace(mean, low=min(max(mean.low, low), high), high=min(max(mean.high, low), high))
        for mean in means
    ]


def one_look(metric: Metric) -> str:
    """Why intervals of this metric are valid for one look only; "" if for every look."""
    if why := family_for(metric.randomizer).ONE_LOOK:
        return why
    return "values were appended, which fewer reports are of" if metric.grown else ""


def _confidence_at_every_look(metric: Metric, answer: Answer) -> float:
    """Confidence of plain intervals that are valid at every look."""
    why = one_look(metric)
    if metric.memoized and answer.repeats > 1:
        why = "with a permanent response there are some only for one epoch"
    if why:
        raise BadParameter(
            f'metric "{metric.name}": there are no intervals valid at every look: {why}; leave '
            "anytime out"
        )
    fewest, figures = answer.reports / metric.fewest, answer.figures
    most = 1.0 if figures is None else float((figures.stderrs / figures.absent).max()) ** 2
    return anytime_confidence(
        answer.confidence, (fewest, fewest * max(most, 1.0)), max(len(answer.values), 1)
    )


def _weakest_guarantee(selected: SelectedTotals) -> Amplified | None:
    """The central guarantee of a report in the smallest batch, of the least private tier."""
    sizes: dict[str, int] = {}
    dummies: dict[str, int] = {}
    for window, window_totals in selected.by_window.items():
        metric, hiding = selected.bundle.streams[window.stream], 0
        size = window_totals.batch_reports  # with a central promise, the whole epoch instead
        if metric.central is not None:
            # Expected number of dummies that hide the number of reports; possibly none were made.
            hiding = expected_dummies(metric) - metric.central.dummies - named_dummies(metric)
            size = window_totals.counted
        sizes[window.stream] = min(size, sizes.get(window.stream, size))
        # The least number of dummies: the shuffler may have made none of the others.
        surely = max(window_totals.dummies - hiding, 0)
        dummies[window.stream] = min(surely, dummies.get(window.stream, surely))
    if not all(sizes.values()):
        return None
    weakest: Amplified | None = None
    for stream, size in sizes.items():
        guarantee = shuffled_of(selected.bundle.streams[stream], size, dummies=dummies[stream])
        if weakest is None or guarantee.epsilon > weakest.epsilon:
            weakest = guarantee
    return weakest
