"""The truth of a rehearsal over time: a file that says what people hold day by day."""

import re
from array import array
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.catalog import Metric
from hubbub.cli.rehearsals.truth import coder, csv_rows
from hubbub.errors import BadParameter, ValueOutOfDomain

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
        shape = len(self.days), len(self.codes)
        cells = self.day[rows] * shape[1] + self.value[rows]
        held = np.bincount(cells, weights=count, minlength=shape[0] * shape[1])
        return held.reshape(shape).astype(np.int64)

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
    other = next((name for name in head if name not in {"day", "value"}), "")
    places = [head.index(name) for name in ("day", "value", other) if name]
    code, codes, own = coder(metric), dict[Any, str](), dict[Any, int]()
    people: dict[str, int] = {}
    known: dict[tuple[str, str], tuple[int, int]] = {}  # lines say the same again and again
    columns = [array("q") for _ in range(4)]
    for line, row in rows:
        if not row:
            continue
        try:
            cells = [row[place].strip() for place in places]
            told = (cells[0], cells[1])
            if told not in known:
                value = code(cells[1])
                codes.setdefault(value, cells[1])
                known[told] = _day(cells[0]), own.setdefault(value, len(own))
            count = 1 if other != "count" else _count(cells[2])
        except (ValueOutOfDomain, ValueError, IndexError) as error:
            raise BadParameter(
                f"--values {path}: line {line}: write a day, a value of metric "
                f'"{metric.name}", and in count a whole number of people'
            ) from error
        who = people.setdefault(cells[2], len(people)) if other == "person" else 0
        for column, cell in zip(columns, (*known[told], count, who), strict=True):
            column.append(cell)
    day, place, number, person = (np.frombuffer(column, np.int64) for column in columns)
    if not len(day) or day.max() - day.min() >= _MAX_DAYS:
        raise BadParameter(f"--values {path}: write lines of 1 to {_MAX_DAYS:,} days")
    days, order = np.unique(day, return_inverse=True)
    if other == "person" and len(np.unique(person * len(days) + order)) < len(day):
        raise BadParameter(f"--values {path}: a person stands twice on one day; leave one out")
    names = tuple(codes.values())
    whose = person if other == "person" else None
    return Days(tuple(days.tolist()), tuple(codes), names, order, place, number, whose)


def _day(text: str) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    return (date.fromisoformat(text) - _FIRST).days


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= _MAX_PEOPLE:
        raise ValueError("not a number of people")
    return count
