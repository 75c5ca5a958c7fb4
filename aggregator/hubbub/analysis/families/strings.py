"""Base of all families that look for candidate strings."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from hubbub.analysis.answer import Answer
from hubbub.analysis.families.contract import NO_SUMS, Family, MetricKind, Tier
from hubbub.analysis.families.rows import nearest, values_answer
from hubbub.analysis.families.tiers import figures_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals


class Strings(Family):
    """Strings that nobody listed: only candidates have names, and nothing can be released."""

    KIND: ClassVar[MetricKind] = "strings"
    ONE_LOOK: ClassVar[str] = NO_SUMS
    REHEARSES_DAYS: ClassVar[bool] = False

    def labels(self, mechanism: Any, values: Sequence[str] | None) -> NoReturn:
        """Refuses: strings cannot be released."""
        raise BadParameter("a metric over strings cannot be released: list the strings as values")

    def statistic(self, mechanism: Any, totals: Totals) -> NoReturn:
        """Refuses: strings cannot be released."""
        raise BadParameter("a metric over strings cannot be released: list the strings as values")

    def question(self, mechanism: Any) -> Mapping[str, Any]:
        """A question about strings, without a size."""
        return {"kind": "strings"}

    def far_apart(self, mechanism: Any) -> tuple[str, str]:
        """Any two strings."""
        return "a", "example.org"

    def examples(self, mechanism: Any) -> Sequence[str]:
        """Twenty strings."""
        return [f"string {place}" for place in range(20)]

    def targets(self, mechanism: Any, number: int) -> Sequence[str]:
        """Strings that no example contains."""
        return [f"target {place}" for place in range(number)]

    def example_share(self, mechanism: Any, targets: Sequence[str]) -> float:
        """0, since nobody reports a target honestly."""
        return 0.0


def candidates_answer(
    own: Family, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
) -> Answer:
    """A row for each candidate, from the family's figures."""
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
