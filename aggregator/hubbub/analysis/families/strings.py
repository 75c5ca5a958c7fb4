"""Strings: what all families have in common that look for candidates."""

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from hubbub.analysis.answer import Answer
from hubbub.analysis.families.contract import Family, MetricKind, Tier
from hubbub.analysis.families.rows import nearest, values_answer
from hubbub.analysis.families.tiers import figures_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals


class Strings(Family):
    """Nobody listed them: they have no names but the candidates', no numbers and no releases."""

    KIND: ClassVar[MetricKind] = "strings"

    def labels(self, mechanism: Any, values: Sequence[str] | None) -> NoReturn:
        """They are not released."""
        raise BadParameter("a metric over strings cannot be released: list what you count")

    def statistic(self, mechanism: Any, totals: Totals) -> NoReturn:
        """They are not released."""
        raise BadParameter("a metric over strings cannot be released: list what you count")


def candidates_answer(
    own: Family, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
) -> Answer:
    """A row for each candidate, by a family's own figures."""
    reports = sum(totals.reports for _, totals in tiers)
    figures = figures_of(own, tiers, names, repeats)
    return values_answer(
        figures,
        names,
        reports,
        confidence,
        repeats,
        picture=lambda judged: nearest(judged, figures.absent, reports, others=True),
    )
