"""Base of all families that look for candidate strings."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from hubbub.analysis.families.contract import NO_SUMS, Family, MetricKind
from hubbub.errors import BadParameter


class Strings(Family):
    """Strings that nobody listed: only candidates have names, and nothing can be released."""

    KIND: ClassVar[MetricKind] = "strings"
    ONE_LOOK: ClassVar[str] = NO_SUMS
    UNRELEASED: ClassVar[str] = (
        "a metric over strings cannot be released: list the strings as values"
    )
    REHEARSES_DAYS: ClassVar[bool] = False

    def labels(self, mechanism: Any, values: Sequence[str] | None) -> NoReturn:
        """Refuses: strings cannot be released."""
        raise BadParameter(self.UNRELEASED)

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
