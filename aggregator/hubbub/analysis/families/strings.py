"""Strings: what all families have in common that look for candidates."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from hubbub.analysis.answer import Answer
from hubbub.analysis.families.contract import NO_SUMS, Family, MetricKind, Tier
from hubbub.analysis.families.rows import nearest, values_answer
from hubbub.analysis.families.tiers import figures_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals


class Strings(Family):
    """Nobody listed them: they have no names but the candidates', no numbers and no releases."""

    KIND: ClassVar[MetricKind] = "strings"
    ONE_LOOK: ClassVar[str] = NO_SUMS
    REHEARSES_DAYS: ClassVar[bool] = False

    def labels(self, mechanism: Any, values: Sequence[str] | None) -> NoReturn:
        """They are not released."""
        raise BadParameter("a metric over strings cannot be released: list the strings as values")

    def statistic(self, mechanism: Any, totals: Totals) -> NoReturn:
        """They are not released."""
        raise BadParameter("a metric over strings cannot be released: list the strings as values")

    def question(self, mechanism: Any) -> Mapping[str, Any]:
        """As many strings as are looked for."""
        return {"kind": "strings"}

    def far_apart(self, mechanism: Any) -> tuple[str, str]:
        """Any two."""
        return "a", "example.org"

    def examples(self, mechanism: Any) -> Sequence[str]:
        """Twenty strings."""
        return [f"string {place}" for place in range(20)]

    def targets(self, mechanism: Any, number: int) -> Sequence[str]:
        """Strings of their own."""
        return [f"target {place}" for place in range(number)]

    def example_share(self, mechanism: Any, targets: Sequence[str]) -> float:
        """Nobody reports a target honestly."""
        return 0.0


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
