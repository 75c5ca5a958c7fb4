"""Computes answers from totals; CLI, web page and notebook all use it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hubbub.analysis.answer import CONFIDENCE, Answer, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.analysis.families.prefix_tree import Trees
from hubbub.analysis.families.tiers_and_rows import (
    Columns,
    Tier,
    reports_of,
    sum_of_metrics,
    with_reports,
)
from hubbub.analysis.strings.likely_strings import LikelyString
from hubbub.analysis.uncertainty.intervals import reach_of, selection_reach
from hubbub.analysis.value_estimates import Mean, ValueEstimates, mean_of, means_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Totals

ListedReports = tuple[Sequence[Tier], int]
"""People who were asked for so many of the values, the first ones: at each epsilon."""


def answer_lists(
    lists: Sequence[ListedReports],
    values: Sequence[str],
    confidence: float = CONFIDENCE,
    repeats: int = 1,
    other: int | None = None,
) -> Answer:
    """Answer from reports to several versions of a list of values; raises as `answer`.

    `lists` contains the tiers and the length of each version, which is a beginning of `values`.
    `other` is the place of the value that stands for all unlisted ones: in a shorter list it
    included the values that were appended later, so that list's reports do not count for it.
    `repeats` is the largest number of reports from one device.
    """
    longest = len(values)
    live_lists: list[ListedReports] = [
        (with_reports(tiers), size) for tiers, size in lists if reports_of(tiers)
    ] or [lists[-1]]
    parts = []
    for tiers, size in live_lists:
        list_figures = family_for(tiers[0][0]).figures_of(tiers, (), repeats)
        # Devices with a shorter list could not report the other values, so they have none of them.
        left_out = other if size < longest else None
        parts.append(
            _map_columns(list_figures, partial(_widen_column, size=longest, left_out=left_out))
        )
    figures = sum_of_metrics(parts)
    reports = sum(reports_of(tiers) for tiers, _ in live_lists)
    value_reports = np.zeros(len(values), dtype=np.int64)
    for tiers, size in live_lists:
        value_reports[:size] += reports_of(tiers)
        if other is not None and size < longest:
            value_reports[other] -= reports_of(tiers)
    judged = Columns.of(figures, reports, confidence)
    value_rows = judged.rows(values, judged.nearest(figures.absent))
    of_asked = tuple(map(_among_those, value_rows, value_reports.tolist()))
    return Answer(
        kind="values",
        reports=reports,
        confidence=confidence,
        values=of_asked,
        repeats=repeats,
        figures=figures,
        reports_asked=tuple(value_reports.tolist()),
    )


def _among_those(row: ValueAnswer, reports: int) -> ValueAnswer:
    """The row with shares of the `reports` that could contain its value, which bound its ends."""
    most = float(reports)
    return replace(
        row,
        share=row.estimate / max(reports, 1),
        low=min(row.low, most),
        high=min(row.high, most),
        share_low=min(row.low / max(reports, 1), 1.0),
        share_high=min(row.high / max(reports, 1), 1.0),
        consistent=min(row.consistent or 0.0, most),
    )


def to_shared_values(first: Answer, other: Answer) -> tuple[Answer, Answer]:
    """Both answers, reduced to the values that every report of both could contain."""
    places = [
        place
        for place in range(len(first.values))
        if all(
            not answer.reports_asked or answer.reports_asked[place] == answer.reports
            for answer in (first, other)
        )
    ]
    return _reduced_to(first, places), _reduced_to(other, places)


def _reduced_to(answer: Answer, places: Sequence[int]) -> Answer:
    if len(places) == len(answer.values):
        return answer
    rows = list(places)
    figures = answer.figures and _map_columns(answer.figures, lambda column: column[rows])
    values = tuple(answer.values[place] for place in places)
    return replace(answer, values=values, figures=figures, reports_asked=())


def _map_columns(figures: ValueEstimates, mapping: Callable[[Floats], Floats]) -> ValueEstimates:
    return replace(
        figures,
        estimates=mapping(figures.estimates),
        stderrs=mapping(figures.stderrs),
        absent=mapping(figures.absent),
        growth=mapping(figures.growth),
    )


def _widen_column(column: Floats, size: int, left_out: int | None) -> Floats:
    """The column extended by zeros to `size` values, and with zero at `left_out`."""
    padded = np.append(column, np.zeros(size - len(column)))
    if left_out is not None:
        padded[left_out] = 0.0
    return padded


def answer(
    mechanism: AnyMechanism,
    totals: Totals,
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Answer:
    """Answer of one mechanism: listed values, parts of a range, a mean, or candidate strings.

    Without candidates, a prefix tree answers with the strings that it discovers. Raises
    BadParameter for wrong or missing candidates, and otherwise as `Family.figures`.
    """
    return answer_tiers([(mechanism, totals)], values, candidates, confidence)


def answer_tiers(
    tiers: Sequence[Tier],
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    repeats: int = 1,
) -> Answer:
    """As `answer`, for people who report at different epsilons: a mechanism and totals for each.

    Tiers are weighted by inverse variance. That is optimal if a person's choice of epsilon is
    independent of the value; otherwise the answer leans towards the larger epsilon's reports.
    `repeats` is the largest number of reports from one device.
    """
    live_tiers = with_reports(tiers)
    mechanism, _ = live_tiers[0]
    family = family_for(mechanism)
    if family.KIND != "strings" and candidates:
        raise BadParameter('this metric is not over strings: leave "candidates" out')
    if family.KIND == "strings" and not candidates and not isinstance(family, Trees):
        raise BadParameter(
            'this metric is over strings: name the strings to look for, as "candidates"'
        )
    names = family.row_names(mechanism, values, candidates)
    return family.answer(live_tiers, names, confidence, repeats)


def likely(tiers: Sequence[Tier], answered: Answer, false_share: float) -> tuple[LikelyString, ...]:
    """Strings that are probably held, beside those in a prefix tree's answer; the surest first.

    `answered` is the answer of the same tiers without candidates; `false_share`, in (0, 1), bounds
    the average share of the returned strings that nobody holds. Raises BadParameter for another
    mechanism, or `false_share` out of range; otherwise as `answer`.
    """
    if not 0 < false_share < 1:
        raise BadParameter(
            f"likely={false_share} is outside (0, 1): write the accepted share of false strings, "
            "such as 0.5"
        )
    live_tiers = with_reports(tiers)
    family = family_for(live_tiers[0][0])
    if not isinstance(family, Trees):
        raise BadParameter(f'{live_tiers[0][0].NAME} finds no strings: leave "likely" out')
    return family.likely(live_tiers, answered, false_share)


@dataclass(frozen=True, slots=True)
class Followed:
    """One metric's tiers, the followed values' places, and the most reports of one device."""

    tiers: Sequence[Tier]
    places: Sequence[int]
    repeats: int = 1


def joined_shares(
    sources: Sequence[Followed],
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    *,
    picked: Sequence[float] = (),
    part: float = 1.0,
) -> list[Mean]:
    """Shares, with intervals for the population, of the values at these places, or of `candidates`.

    The reports are those of all sources, metrics with the same values or range. For numbers the
    only row is their mean in the metric's unit; for a vector a mean per coordinate. `picked` is,
    for values followed because they were frequent, their place, in (0, 1], as of
    `selection_reach`; `part` is the share of these reports among those in which they were frequent,
    in (0, 1].
    """
    live_sources = [replace(source, tiers=with_reports(source.tiers)) for source in sources]
    reports = sum(reports_of(source.tiers) for source in live_sources)
    repeats = sum(source.repeats for source in live_sources)
    mechanism, _ = live_sources[0].tiers[0]
    family = family_for(mechanism)
    ends, of_vector = family.ends(mechanism), family.KIND == "vector"
    of_numbers = bool(ends) and not of_vector
    figures = sum_of_metrics(
        [_followed_estimates(source, candidates, of_numbers=of_numbers) for source in live_sources]
    )
    if ends and of_vector:
        # The errors that reports of a vector show include those of the population.
        return means_of(figures, ends, reports, confidence)
    if ends:
        return [mean_of(figures, ends, reports, confidence, repeats=repeats)]
    number, reach = max(reports, 1), reach_of(confidence)
    shared = figures.of_shares(reports, repeats)
    lower_reach = selection_reach(np.array(picked), confidence, part=part) if picked else reach
    bounds = shared.between(reports, down=lower_reach, up=reach)
    columns = (column / number for column in (shared.estimates, shared.stderrs, *bounds))
    return [Mean(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _followed_estimates(
    source: Followed, candidates: Sequence[str], *, of_numbers: bool
) -> ValueEstimates:
    """Estimates of the followed values, in their order; for numbers, of the sum of their places."""
    mechanism, _ = source.tiers[0]
    figures = family_for(mechanism).figures_of(source.tiers, candidates, source.repeats)
    if of_numbers:
        return figures.place or figures
    rows = list(source.places)
    return _map_columns(figures, lambda column: column[rows])
