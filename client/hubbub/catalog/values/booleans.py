"""Booleans: true or false, as two listed values."""

from collections.abc import Mapping
from typing import Any, ClassVar

from hubbub.catalog.values.value_kind import BOOLEANS, Complain, ValueKind
from hubbub.errors import BadParameter

_FOLLOWS = "follows from the kind; leave it out, or the kind"


class Boolean(ValueKind):
    """True or false."""

    TAKES_OTHER: ClassVar[bool] = False
    LISTS: ClassVar[str] = "booleans"
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        **ValueKind.NOT_ITS,
        **dict.fromkeys(("values", "values_file", "domain"), _FOLLOWS),
    }

    def spelled(self, table: dict[str, Any], wrong: Complain) -> dict[str, Any]:  # noqa: ARG002 no wish
        """Returns the table with both values."""
        return {**table, "values": [*BOOLEANS]}

    def check(self, metric: Any, domain: str) -> None:
        """Raises BadParameter unless both values are listed."""
        if sorted(metric.values or ()) != [*BOOLEANS]:
            raise BadParameter("kind: a boolean is true or false, and listed so")
        super().check(metric, domain)
