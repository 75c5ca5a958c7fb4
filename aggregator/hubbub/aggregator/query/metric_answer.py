"""The whole answer about a metric: estimates, percentiles, guarantees, and notes under it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf, sqrt
from operator import attrgetter
from typing import Any, Final

from hubbub.aggregator.query import estimating
from hubbub.aggregator.query.answer_types import Estimated, Shuffled
from hubbub.aggregator.query.funnel_and_retention_totals import figure_kind
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.analysis.answer import OF_NUMBERS, Answer, ValueAnswer
from hubbub.analysis.funnels_retention_and_rates import Figure
from hubbub.analysis.percentiles import percentiles_of, shares_below
from hubbub.analysis.uncertainty.intervals import Bounds
from hubbub.authoring.crowds.accountant import hides_number, number_variance, reports_variance
from hubbub.catalog import Metric, epoch_start
from hubbub.errors.message_words import several
from hubbub.privacy.amplification import Amplified
from hubbub.privacy.crowd_guarantees import rests_on
from hubbub.query_results.sentences import SHARE_OUTSIDE

_NAMED: Final = 5
# An estimate further outside its range than this share of the range gets a warning.
_ABSURD: Final = 0.05
_NO_MISTAKE: Final = (
    "{what} is no mistake: the estimate subtracts the average noise, and in {reports} it was "
    "larger or smaller. The interval contains the plausible values; more reports narrow it"
)


def notes(plan: estimating.AnswerPlan, answer: Answer) -> list[str]:
    """Sentences about what an answer does not show, or seems to show."""
    metric, sentences = plan.metric, list[str]()
    if answer.reports_asked:
        sentences += _appended_value_notes(answer)
        if metric.other:
            sentences.append(
                '"other" of a shorter list contained the values appended since, so it is left out.'
            )
    elif metric.edges and metric.clamps:
        sentences.append(_range_end_note(metric, answer))
    elif metric.rate:
        most = f"{metric.rate.most:,}"
        sentences.append(f"Counts from 0 to {most}: a device reports a larger count as {most}.")
    elif answer.span and answer.kind == "vector":
        limit = f"{answer.span[1]:,g} long"
        sentences.append(
            f"Vectors up to {limit}: longer ones count as {limit}, and their number is not known."
        )
    elif answer.span and (answer.kind == "mean" or answer.mean is not None):
        sentences += _number_notes(metric, answer.kind, *answer.span)
    if plan.family.SHARES:
        sentences.append(plan.family.SHARES)
    if plan.family.FINDS and not answer.values:
        sentences.append(
            "No string is clearly above chance: request more epochs; --likely needs less evidence."
        )
    levels = [*map(attrgetter("estimate"), answer.values)]
    for note in notes_of_levels(answer, levels, answer.reports, whole=answer.reports):
        sentences.append(f"{note}.")
    return sentences


def notes_of_levels(
    answer: Answer, levels: Sequence[float], reports: int, *, whole: float = 1.0
) -> list[str]:
    """The note, without its full stop, if one of the shares or means is far outside its range.

    Args:
        answer: one of the same metric.
        levels: shares, of which `whole` is 100%, or means.
        reports: fewest reports that a level rests on.
        whole: 1, or a number of reports.
    """
    what, (low, high) = SHARE_OUTSIDE, (0.0, whole)
    if answer.kind in OF_NUMBERS and answer.span:
        what, (low, high) = "A mean outside its range", answer.span
    room = _ABSURD * (high - low)
    if not levels or low - room <= min(levels) <= max(levels) <= high + room:
        return []
    return [_NO_MISTAKE.format(what=what, reports=several(reports, "report"))]


def notes_of_outside(bounds: Iterable[Bounds], what: str, reports: int) -> list[str]:
    """The note of the list, without its full stop, if an estimate is outside its own interval.

    what: what the estimates are, with their article.
    """
    if all(low <= estimate <= high for estimate, low, high in bounds):
        return []
    text = f"{what} outside its interval"
    return [_NO_MISTAKE.format(what=text, reports=several(reports, "report"))]


def notes_of_places(rows: Sequence[ValueAnswer]) -> list[str]:
    """The note, without its full stop, if some but not all of the largest values may be absent."""
    absent = sum(row.low <= 0 for row in rows)
    if absent in {0, len(rows)}:
        return []
    values = "1 of these values has" if absent == 1 else f"{absent:,} of these values have"
    return [f"{values} an interval that reaches 0: places among such values are chance"]


def notes_of_figures(figures: Sequence[Figure], reports: int) -> list[str]:
    """The same for figures that are far outside their intervals."""
    bounds = []
    for figure in figures:
        if figure.estimate is not None:
            room = _ABSURD * max(figure.high or 0.0, 1.0)
            high = inf if figure.high is None else figure.high
            bounds.append((figure.estimate, figure.low - room, high + room))
    return notes_of_outside(bounds, "An estimate", reports)


def _number_notes(metric: Metric, kind: str, low: float, high: float) -> list[str]:
    """Sentences about the range of reported numbers, and about what their mean shows."""
    unit = f" {metric.unit}" if metric.unit else ""
    others = "others count as the nearer end" if metric.clamps else "devices report no others"
    if metric.clamps and kind == "mean":
        others += ", and their number is unknown; a metric with edges shows it"
    spread = (
        "How they are spread is not known: a few large numbers move a mean as much as many small "
        "ones."
        if kind == "mean"
        else "For the mean each number counts as the middle of its range."
    )
    return [f"Numbers from {low:,g} to {high:,g}{unit}: {others}.", spread]


def _appended_value_notes(answer: Answer) -> Iterator[str]:
    """Sentences about values that some reports could not contain."""
    values_by_number: dict[int, list[str]] = {}
    for value, number in zip(answer.values, answer.reports_asked, strict=True):
        values_by_number.setdefault(number, []).append(value.value)
    values_by_number.pop(answer.reports, None)
    for number, values in sorted(values_by_number.items(), reverse=True):
        names = ", ".join(values[:_NAMED]) + (", ..." if len(values) > _NAMED else "")
        yield (
            f"Not asked in {answer.reports - number:,} of {answer.reports:,} reports, since these "
            f"values were appended later: {names}. The share is of the {number:,} that could "
            "contain it."
        )


def _range_end_note(metric: Metric, answer: Answer) -> str:
    """Sentence about numbers outside the edges: where they count, and their estimated share."""
    low, high = metric.edges[0], metric.edges[-1]
    is_open = low > metric.value_kind.LEAST
    ends = [*([metric.values[0]] if is_open else []), metric.values[-1]] if metric.values else []
    end_shares = {value.value: value.estimate / max(answer.reports, 1) for value in answer.values}
    shares = ", ".join(f"{end} {end_shares[end]:.1%}" for end in ends if end in end_shares)
    unit = f" {metric.unit}" if metric.unit else ""
    sentence = f"Numbers above {high:,g}{unit} are counted at that end"
    if is_open:
        sentence = f"Numbers outside {low:,g} to {high:,g}{unit} are counted at its ends"
    return f"{sentence}: {shares}." if shares else f"{sentence}."


def notice_of(*selections: EpochSelection) -> str:
    """Notice of estimated numbers of reports; "" for none.

    `selections`, of one metric with a central promise, are those whose numbers the answer shows.
    """
    metric = selections[0].metric
    text, dummies_each, noise = "", metric.made_each, hides_number(metric)
    if noise and not any(selection.counted for selection in selections):
        text = (
            f"{metric.name}: nothing has left the shuffler, which never reveals how many "
            "reports wait."
        )
    elif dummies_each or noise:
        errors = " and ".join(
            f"{item.reports:,} ± {reports_stderr(item):,.1f}" for item in selections
        )
        why = (
            "the shuffler adds a secret number of dummies to an epoch."
            if noise
            else f"with each report a device sends {dummies_each:g} dummies on average, which "
            "nobody can recognize."
        )
        text = (
            f"{metric.name}: the number of reports is an estimate, {errors} (standard error): {why}"
        )
    return text


def reports_stderr(selection: EpochSelection) -> float:
    """Standard error of the number of reports of a metric with a central promise."""
    metric = selection.metric
    hidden = sum(number_variance(metric, count.reports) for count in selection.counted.values())
    return sqrt(reports_variance(selection.reports, metric.made_each) + hidden)


_LATEST: Final = 253_402_300_799


def whole_answer(
    plan: estimating.AnswerPlan,
    envelope: Mapping[str, Any],
    selection: EpochSelection,
    query: estimating.EstimateQuery,
    estimate: estimating.RangeEstimate,
) -> Estimated:
    """The answer from totals, without the shuffler's terms; `envelope` has the common fields."""
    metric, answer = plan.metric, estimate.answer
    ranks = None if query.anytime else estimate.ranks
    if query.percentiles or query.below:
        ranks = estimating.ranks_for(metric, query, ranks)
    only_below = query.below and not query.percentiles
    first_epoch, last_epoch = selection.epochs[0], selection.epochs[-1]
    lowest, highest = answer.span or (None, None)
    edges: Sequence[float] = metric.edges
    if edges:
        lowest, highest = edges[0], edges[-1]
    elif metric.values is None:
        edges = plan.family.edges(metric.randomizer)
    return Estimated(
        **envelope,
        description=metric.description,
        since=iso_time(epoch_start(first_epoch, metric.epoch)),
        until=iso_time(epoch_start(last_epoch + 1, metric.epoch)),
        updated=iso_time(estimate.updated) if estimate.updated else None,
        reports_stderr=reports_stderr(selection) if metric.central else 0.0,
        waiting=None,
        withheld=None,
        mechanism=metric.mechanism,
        epsilon=plan.epsilon,
        shuffled=shuffled(metric, estimate.shuffled) if estimate.shuffled else None,
        honest_p_value=estimate.plausibility.p_value,
        findings=list(estimate.plausibility.findings),
        mean=answer.mean,
        others=answer.others,
        fit_p_value=answer.fit_p_value,
        twins=list(answer.twins),
        beginnings=list(answer.beginnings),
        likely=list(answer.likely),
        edges=list(edges),
        percentiles=percentiles_of(
            ranks, estimating.percentiles_for(metric, query), answer.confidence
        )
        if ranks and not only_below
        else [],
        below=shares_below(ranks, query.below, answer.confidence) if ranks else [],
        total=len(answer.values),
        values=list(answer.values),
        promised=shuffled(metric, estimate.promised),
        lowest=lowest,
        highest=highest,
        notes=notes(plan, answer),
        anytime=query.anytime,
        figures=metric.kind if metric.kind and figure_kind(metric) else "",
    )


def shuffled(metric: Metric, guarantee: Amplified) -> Shuffled:
    """A central guarantee with its assumption."""
    return Shuffled(
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        reports=guarantee.reports,
        assumption=guarantee.assumption,
        rests_on=rests_on(metric, guarantee),
    )


def iso_time(seconds: float) -> str:
    """ISO 8601 in UTC; capped at the end of year 9999."""
    return datetime.fromtimestamp(min(seconds, _LATEST), UTC).isoformat().replace("+00:00", "Z")
