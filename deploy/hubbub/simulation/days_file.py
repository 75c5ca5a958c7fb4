"""Reads the truth of a rehearsal over time: a file with the values that people hold each day."""

import re
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.families import family_for
from hubbub.catalog import Metric
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.simulation.people_file import Rows, coder, parts_as_numbers

Numbers = npt.NDArray[np.int64]

_FIRST: Final = date(1970, 1, 1)
_MAX_DAYS: Final = 1000
_MAX_PEOPLE: Final = 10**9
_NUMBER: Final = re.compile(r"[0-9]{1,6}")
_WORDS: Final = {"day", "value", "person", "count"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """The values that people hold each day: a row per person and day, or per day and value.

    Attributes:
        days: the days of the file, ascending, numbered from 1970-01-01.
        codes: the distinct values as the mechanism encodes them.
        day, value: indexes into `days` and `codes`, per row. count: number of people, per row.
        person: number of the person, from 0, per row; None if the file does not identify people.
    """

    days: tuple[int, ...]
    codes: tuple[Any, ...]
    day: Numbers
    value: Numbers
    count: Numbers
    person: Numbers | None

    def counted(self, rows: Numbers | slice, count: Numbers) -> Numbers:
        """Counts the people who hold each value on each day; shape (days, codes)."""
        shape = len(self.days), len(self.codes)
        cells = self.day[rows] * shape[1] + self.value[rows]
        counts = np.bincount(cells, weights=count, minlength=shape[0] * shape[1])
        return counts.reshape(shape).astype(np.int64)

    @property
    def held(self) -> Numbers:
        """The counts of all people; shape (days, codes)."""
        return self.counted(slice(None), self.count)


def has_days(head: Sequence[str], metric: Metric) -> bool:
    """Whether a file's first line has a column `day` that is not one of the metric's own."""
    columns_of_metric = {*metric.parts, *metric.breakdown}
    return "day" in _words(head, but=columns_of_metric) and "day" not in columns_of_metric


def read_days(path: Path, rows: Rows, metric: Metric) -> Days:
    """Reads the rows of a CSV file with the columns day, value, and person or count.

    A day is 2026-11-22, or a number of days since 1970. The values of a set are separated by |; a
    metric with parts has a column for each part in place of value. Raises BadParameter if the rows
    cannot be read, have other columns, a value that the metric does not take, or a person twice on
    a day. The message names the line.
    """
    if metric.epoch != "day" or not family_for(metric.randomizer).REHEARSES_DAYS:
        raise BadParameter(
            f'metric "{metric.name}": a column "day" needs epoch = "day" and listed values, sets, '
            "parts or numbers; leave the column out"
        )
    parts = metric.parts
    names = [*parts] or ["value"]
    head = _words(next(rows)[1], but=parts)
    other = next((name for name in head if name not in {"day", *names}), "")
    if len({*head}) != len(head) or {*head} not in [
        {"day", *names, *optional} for optional in ((), ("person",), ("count",))
    ]:
        raise BadParameter(
            f"--values {path}: line 1: write the header day,{','.join(names)}, and person or count "
            "if needed"
        )
    code, codes = coder(metric), dict[Any, int]()
    people: dict[str, int] = {}
    memo: dict[tuple[str, ...], tuple[int, int]] = {}  # many lines are equal
    columns = [array("q") for _ in range(4)]
    places = [head.index(name) for name in ("day", *names)]
    for line, row in rows:
        try:
            cells = [cell.strip() for cell in row]
            key = tuple(cells[place] for place in places)
            if key not in memo:
                when, *texts = key
                cells_by_name = dict(zip(names, texts, strict=True))
                value = parts_as_numbers(cells_by_name, metric) if parts else texts[0]
                memo[key] = _day(when), codes.setdefault(code(value), len(codes))
            last = cells[head.index(other)] if other else ""
            count = 1 if other != "count" else _count(last)
        except (ValueOutOfDomain, ValueError, IndexError) as error:
            raise BadParameter(
                f"--values {path}: line {line}: write a day that exists, a value of metric "
                f'"{metric.name}", and in count a whole number of people'
            ) from error
        who = people.setdefault(last, len(people)) if other == "person" else 0
        for column, cell in zip(columns, (*memo[key], count, who), strict=True):
            column.append(cell)
    return _days(path, columns, tuple(codes), by_person=other == "person")


def _days(
    path: Path, columns: "Sequence[array[int]]", codes: tuple[Any, ...], *, by_person: bool
) -> Days:
    """Makes Days from columns of equal length: day, index of the code, count, and person."""
    day, place, number, person = (np.frombuffer(column, np.int64) for column in columns)
    if not len(day) or day.max() - day.min() >= _MAX_DAYS:
        raise BadParameter(f"--values {path}: write lines of 1 to {_MAX_DAYS:,} days")
    days, order = np.unique(day, return_inverse=True)
    if by_person and len(np.unique(person * len(days) + order)) < len(day):
        raise BadParameter(f"--values {path}: a person occurs twice on one day; leave one line out")
    return Days(
        days=tuple(days.tolist()),
        codes=codes,
        day=order,
        value=place,
        count=number,
        person=person if by_person else None,
    )


def _words(head: Sequence[str], but: Collection[str]) -> list[str]:
    """The cells of the first line; our column names in lower case, except those in `but`."""
    cells = [cell.strip() for cell in head]
    return [cell.lower() if cell not in but and cell.lower() in _WORDS else cell for cell in cells]


def _day(text: str) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    return (date.fromisoformat(text) - _FIRST).days


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= _MAX_PEOPLE:
        raise ValueError("not a number of people")
    return count
