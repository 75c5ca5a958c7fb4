"""Page: which rows of an answer, and in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from hubbub.errors import BadParameter


class _Named(Protocol):
    @property
    def value(self) -> str: ...


Row = TypeVar("Row", bound=_Named)


@dataclass(frozen=True, slots=True)
class Page:
    """Which of the values: all from `first` on, or `number` of them.

    order: "listed"; "rank", the most telling first; or a field of the rows, with "-" before it for
    the largest first. find: those alone whose name holds this text, in any case.
    """

    first: int = 0
    number: int | None = None
    order: str = "listed"
    find: str = ""

    def of(self, rows: Sequence[Row], rank: Callable[[Row], Any]) -> tuple[list[Row], int]:
        """The rows of this page, and how many there are on all pages.

        Raises:
            BadParameter: the order is by a field that these rows do not have.
        """
        text = self.find.casefold()
        matches = [row for row in rows if text in row.value.casefold()] if text else list(rows)
        field = self.order.removeprefix("-")
        if field == "rank":
            matches.sort(key=rank, reverse=self.order != field)
        elif field != "listed":
            if not all(hasattr(row, field) for row in matches):
                raise BadParameter(f"order {self.order}: these rows have no {field}; take another")
            # Of a mean some are not known; those come last of what is largest first.
            of = [(getattr(row, field) is not None, getattr(row, field)) for row in matches]
            places = sorted(range(len(of)), key=of.__getitem__, reverse=self.order != field)
            matches = [matches[place] for place in places]
        end = None if self.number is None else self.first + self.number
        return matches[self.first : end], len(matches)


WHOLE: Final = Page()
