"""The truth of a rehearsal over time: a file that says what people hold day by day."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.catalog import Metric
from hubbub.cli.rehearsals.truth import coder, csv_rows
from hubbub.errors import BadParameter, ValueOutOfDomain

__all__ = ["Days", "has_days", "read_days"]

Numbers = npt.NDArray[np.int64]

_FIRST: Final = date(1970, 1, 1)
_MAX_DAYS: Final = 1000
_MAX_PEOPLE: Final = 10**9
_NUMBER: Final = re.compile(r"[0-9]{1,6}")
_HEADS: Final = (["day", "value"], ["count", "day", "value"], ["day", "person", "value"])
_HEAD: Final = "day,value, with person or count beside them if need be"


@dataclass(frozen=True, slots=True)
class Days:
    """What people hold on each day: a row per person and day, or per day, value and how many.

    days: those of the file, ascending, numbered from 1970. codes: the values as the mechanism takes
        them, each once; names: as the file writes them.
    day, value: per row, places in `days` and `codes`. count: how many people the row is of.
    person: per row whose it is, from 0 on; None where the file does not say who is who.
    """

    days: tuple[int, ...]
    codes: tuple[Any, ...]
    names: tuple[str, ...]
    day: Numbers
    value: Numbers
    count: Numbers
    person: Numbers | None

    def counted(self, rows: Numbers | slice, count: Numbers) -> Numbers:
        """How many of these people hold each value on each day: [day, value]."""
        held = np.zeros((len(self.days), len(self.codes)), dtype=np.int64)
        np.add.at(held, (self.day[rows], self.value[rows]), count)
        return held

    @property
    def held(self) -> Numbers:
        """How many of all people do."""
        return self.counted(slice(None), self.count)


def has_days(path: Path) -> bool:
    """Whether a file's head has a column `day`."""
    head = next(iter(csv_rows(path)), (0, ()))[1]
    return "day" in [cell.strip().lower() for cell in head]


def read_days(path: Path, metric: Metric) -> Days:
    """A CSV file, plain or .gz, with a head: day, value, and person or count.

    A day is 2026-11-22, or a number of days since 1970.

    Raises:
        BadParameter: it cannot be read; a line is not of such columns, or its value is not one of
            the metric's; a person stands twice on a day. The message names the line.
    """
    if metric.epoch != "day" or metric.randomizer.FAMILY not in {"listed", "ranges", "mean"}:
        raise BadParameter(
            f'metric "{metric.name}": a column day is for a metric of days with listed values or '
            "numbers; leave the column out"
        )
    rows = csv_rows(path)
    head = [cell.strip().lower() for cell in next(rows)[1]]
    if sorted(head) not in _HEADS:
        raise BadParameter(f"--values {path}: line 1: write a head of {_HEAD}")
    places = {name: head.index(name) for name in head}
    code, codes = coder(metric), dict[Any, str]()
    people: dict[str, int] = {}
    table: list[tuple[int, Any, int, int]] = []
    for line, row in rows:
        if not row:
            continue
        try:
            cells = {name: row[place].strip() for name, place in places.items()}
            value = code(cells["value"])
            day, count = _day(cells["day"]), _count(cells.get("count", "1"))
        except (ValueOutOfDomain, ValueError, IndexError) as error:
            raise BadParameter(
                f"--values {path}: line {line}: write a day, a value of metric "
                f'"{metric.name}", and in count a whole number of people'
            ) from error
        codes.setdefault(value, cells["value"])
        person = people.setdefault(cells.get("person", ""), len(people))
        table.append((day, value, count, person))
    days = sorted({row[0] for row in table})
    if not table or days[-1] - days[0] >= _MAX_DAYS:
        raise BadParameter(f"--values {path}: write lines of 1 to {_MAX_DAYS:,} days")
    own = {value: place for place, value in enumerate(codes)}
    order = {day: place for place, day in enumerate(days)}
    day, place, number, who = np.array(
        [(order[day], own[value], count, who) for day, value, count, who in table], np.int64
    ).T
    told = "person" in head
    if told and len(np.unique([day, who], axis=1).T) < len(table):
        raise BadParameter(f"--values {path}: a person stands twice on one day; leave one out")
    names = tuple(codes.values())
    return Days(tuple(days), tuple(codes), names, day, place, number, who if told else None)


def _day(text: str) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    return (date.fromisoformat(text) - _FIRST).days


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= _MAX_PEOPLE:
        raise ValueError("not a number of people")
    return count
