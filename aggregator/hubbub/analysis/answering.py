"""Answering: from totals to an answer, the same from every face."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hubbub.analysis.answer import CONFIDENCE, Answer, LikelyString, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import Tier, added, family_for, figures_of
from hubbub.analysis.families.rows import columns, nearest, rows
from hubbub.analysis.families.tree import Trees
from hubbub.analysis.value_estimates import ValueEstimates
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
    """As `answer_tiers`, from the reports to several lists, each the beginning of `values`.

    other: which of the values stands for all that are not listed. Of a shorter list it is left out:
        it held what was appended since, so nobody there was asked for what it is now.

    Raises:
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    longest = len(values)
    live_lists: list[ListedReports] = [
        ([tier for tier in tiers if tier[1].reports], size) for tiers, size in lists if _sum(tiers)
    ] or [lists[-1]]
    parts = []
    for tiers, size in live_lists:
        list_figures = figures_of(family_for(tiers[0][0]), tiers, (), repeats, shape=False)
        # Of what they were not asked for they could say nothing: none of them holds it.
        left_out = other if size < longest else None
        parts.append(_mapped(list_figures, partial(_widened, size=longest, left_out=left_out)))
    figures = added(parts)
    reports = sum(_sum(tiers) for tiers, _ in live_lists)
    value_reports = np.zeros(len(values), dtype=np.int64)
    for tiers, size in live_lists:
        value_reports[:size] += _sum(tiers)
        if other is not None and size < longest:
            value_reports[other] -= _sum(tiers)
    judged = columns(figures, reports, confidence)
    value_rows = rows(values, reports, judged, nearest(judged, figures.absent, reports))
    of_asked = tuple(map(_among_those, value_rows, value_reports.tolist()))
    against = max(family_for(m).correlation(m) for tiers, _ in live_lists for m, _ in tiers)
    return Answer(
        kind="values",
        reports=reports,
        confidence=confidence,
        values=of_asked,
        correlation=against,
        repeats=repeats,
        figures=figures,
        reports_asked=tuple(value_reports.tolist()),
    )


def _among_those(row: ValueAnswer, reports: int) -> ValueAnswer:
    """A row as of those who could say its value, of whom no more than all can hold it."""
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


def only_of_all(first: Answer, other: Answer) -> tuple[Answer, Answer]:
    """Two answers, of the values alone that every report of both could say."""
    places = [
        place
        for place in range(len(first.values))
        if all(
            not answer.reports_asked or answer.reports_asked[place] == answer.reports
            for answer in (first, other)
        )
    ]
    return _cut(first, places), _cut(other, places)


def _cut(answer: Answer, places: Sequence[int]) -> Answer:
    if len(places) == len(answer.values):
        return answer
    own = list(places)
    figures = answer.figures and _mapped(answer.figures, lambda column: column[own])
    values = tuple(answer.values[place] for place in places)
    return replace(answer, values=values, figures=figures, reports_asked=())


def _mapped(figures: ValueEstimates, of: Callable[[Floats], Floats]) -> ValueEstimates:
    """All that there is one of for each value, changed alike."""
    return replace(
        figures,
        estimates=of(figures.estimates),
        stderrs=of(figures.stderrs),
        absent=of(figures.absent),
        growth=of(figures.growth),
    )


def _widened(column: Floats, size: int, left_out: int | None) -> Floats:
    """Zeros where nobody was asked."""
    wide = np.append(column, np.zeros(size - len(column)))
    if left_out is not None:
        wide[left_out] = 0.0
    return wide


def _sum(tiers: Sequence[Tier]) -> int:
    return sum(totals.reports for _, totals in tiers)


def answer(
    mechanism: AnyMechanism,
    totals: Totals,
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Answer:
    """Estimates for the listed `values`; for `candidates` if over strings; of a range if numbers.

    Of a prefix tree without candidates, for the strings that are found.

    Raises:
        BadParameter: candidates where none belong, or none for strings that need them.
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    return answer_tiers([(mechanism, totals)], values, candidates, confidence)


def answer_tiers(
    tiers: Sequence[Tier],
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    repeats: int = 1,
) -> Answer:
    """As `answer`, from people who report at different epsilons, each a mechanism with totals.

    Shares are weighted by inverse variance: the best there is if which epsilon a person chose has
    nothing to do with the value; otherwise the answer leans to those who chose the larger one.
    repeats: how many of the reports one device may have made; see `figures`. A decode of RAPPOR
        strings reads its noise off what it cannot explain, repeated lies included; `fit_p_value` is
        judged by them.
    """
    live_tiers = with_reports(tiers)
    mechanism, _ = live_tiers[0]
    own = family_for(mechanism)
    if own.KIND != "strings" and candidates:
        raise BadParameter("this metric is not over strings: leave candidates out")
    if own.KIND == "strings" and not candidates and not isinstance(own, Trees):
        raise BadParameter("this metric is over strings: name the strings to look for (candidates)")
    names = candidates if own.KIND == "strings" else own.labels(mechanism, values)
    return own.answer(live_tiers, names, confidence, repeats)


def likely(tiers: Sequence[Tier], answered: Answer, false_share: float) -> tuple[LikelyString, ...]:
    """Strings that are likely held beside those that a prefix tree's answer has, the surest first.

    answered: what the same tiers answered, without candidates.
    false_share: of them, the share that nobody holds, at most on average, in (0, 1).

    Raises:
        BadParameter: of what finds no strings; a share that is none.
        BatchTooSmall, ShapeMismatch: as `answer`.
    """
    if not 0 < false_share < 1:
        raise BadParameter(
            f"likely {false_share} is outside (0, 1): write the accepted share of false strings, "
            "such as 0.5"
        )
    live_tiers = with_reports(tiers)
    own = family_for(live_tiers[0][0])
    if not isinstance(own, Trees):
        raise BadParameter(f"{live_tiers[0][0].NAME} finds no strings: leave likely out")
    return own.likely(live_tiers, answered, false_share)


def with_reports(tiers: Sequence[Tier]) -> Sequence[Tier]:
    """Those that hold a report; the first, where none does."""
    return [tier for tier in tiers if tier[1].reports] or list(tiers[:1])
