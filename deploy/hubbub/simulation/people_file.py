"""Reads the truth of a rehearsal: a file of values, with how many people hold each, or by day."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.families import family_for
from hubbub.catalog import Metric, cell_of
from hubbub.errors import BadParameter, NotListed, ValueOutOfDomain
from hubbub.errors.message_words import did_you_mean, first_names
from hubbub.programs.text_files import first_row_and_rest
from hubbub.simulation.truth import Truth

Rows = Iterator[tuple[int, list[str]]]
"""Line number and cells of each row."""

_MAX_PEOPLE: Final = 10**12
_MAX_DIGITS: Final = len(str(_MAX_PEOPLE))
# Values are each drawn from their own distribution; numbers of one bucket share one.
_MAX_NUMBERS: Final = 10_000
_LIMITS: Final = {
    "numbers": (_MAX_NUMBERS, f"round them to {_MAX_NUMBERS:,} or fewer"),
    # Single persons; larger files are populations to draw from.
    "vectors": (100_000, "keep 100,000, and draw people of them: --reports"),
}
# Ten times the strings of most collections: a million take some minutes of a processor, and 2 GB.
_MAX_STRINGS: Final = 1_000_000
_HEADS: Final = (["value"], ["value", "count"])


def read_truth(path: Path, rows: Rows, metric: Metric) -> Truth:
    """Reads the rows of a CSV file: values or `value,count`, one per line, after any header.

    The values of a set are separated by |; an empty set is an empty value with its count. Parts and
    the coordinates of a vector have a column each, named in a header; so have the public fields of
    a metric with a breakdown. Raises BadParameter, which names the line, not its content, if the
    file cannot be read, or a line or value is invalid.
    """
    code, counts = coder(metric), Counter[tuple[Any, str]]()
    names: dict[Any, str] = {}
    value_columns = metric.value_kind.columns(metric)
    head, rows = first_row_and_rest(rows)
    has_fields = any(cell.strip() in metric.breakdown for cell in head)  # columns of public fields
    by_columns = value_columns or has_fields
    lines = _lines(path, rows)
    if by_columns:
        lines = _lines_of_columns(path, rows, metric, has_fields=has_fields)
    for number, (text, public, count) in lines:
        try:
            value = code(text)
        except (ValueOutOfDomain, ValueError) as error:
            raise BadParameter(
                f"--values {path}: line {number}: its value is not one of metric "
                f'"{metric.name}"{_listing(metric, error)}; correct it, or the catalog'
            ) from error
        name = metric.values[value] if metric.edges and metric.values else str(text)
        names.setdefault(value, name)
        if experiment := metric.experiment:
            arm = public.get(experiment.name)  # a device outside the experiment has none
            if arm and arm not in experiment.arms:
                raise BadParameter(
                    f'--values {path}: line {number}: experiment "{experiment.name}" has only '
                    f"the arms {', '.join(experiment.arms)}; leave the cell empty for "
                    f"devices in no arm{did_you_mean(arm, experiment.arms)}"
                )
        counts[value, cell_of(metric.name, metric.breakdown, public)] += count
    people = sum(counts.values())
    if not 1 <= people <= _MAX_PEOPLE:
        raise BadParameter(f"--values {path}: {people:,} people; give 1 to {_MAX_PEOPLE:,}")
    if len(counts) > _MAX_STRINGS and metric.values is None:
        raise BadParameter(
            f"--values {path}: {len(counts):,} different values, above {_MAX_STRINGS:,}; draw "
            "fewer people at random from the file, so that the shares stay as they are"
        )
    kind = metric.randomizer.VALUES
    limit, remedy = _LIMITS.get(kind, (len(counts), ""))
    if len(counts) > limit:
        raise BadParameter(f"--values {path}: {len(counts):,} different {kind}; {remedy}")
    codes, streams = zip(*counts, strict=True)
    value_names = tuple(names[value] for value in codes)
    return Truth(value_names, codes, tuple(counts.values()), streams if has_fields else ())


def _listing(metric: Metric, error: Exception) -> str:
    """The metric's first values, if the one of a line is not listed, or the rule that it breaks."""
    # PRIVACY: without what is similar to the value, which a person holds.
    if isinstance(error, NotListed):
        return f" ({first_names(metric.values or ())})"
    rule = str(error).removeprefix(f'metric "{metric.name}": ')
    return f" ({rule})" if isinstance(error, ValueOutOfDomain) else ""


def _lines(path: Path, rows: Rows) -> Iterator[tuple[int, tuple[str, Mapping[str, str], int]]]:
    """Yields line number and value, no public fields, and count."""
    for number, row in rows:
        if number == 1 and [cell.strip().lower() for cell in row] in _HEADS:
            continue
        match row:
            case [value]:
                yield number, (value, {}, 1)
            case [value, count] if count.strip().isdecimal() and len(count) <= _MAX_DIGITS:
                yield number, (value, {}, int(count))
            case _:
                raise BadParameter(
                    f"--values {path}: line {number}: write a value, or a value and a whole "
                    "number of people that hold it, from 0 on"
                )


def _lines_of_columns(
    path: Path, rows: Rows, metric: Metric, *, has_fields: bool
) -> Iterator[tuple[int, tuple[Any, Mapping[str, str], int]]]:
    """Yields line number, value (or those of the parts), public fields, and count, by the header.

    `has_fields` is whether public fields have columns.
    """
    parted = metric.value_kind.columns(metric)
    value_columns = [*parted] or ["value"]
    public = [*metric.breakdown] if has_fields else []
    parts = [*value_columns, *public]
    head = [cell.strip() for cell in next(rows, (0, ()))[1]]
    if len({*head}) != len(head) or {*head} not in ({*parts}, {*parts, "count"}):
        column_name = metric.value_kind.COLUMN if parted else "the value"
        column_name += " and each public field" if has_fields else ""
        others = "" if has_fields else ", ".join(metric.breakdown)
        raise BadParameter(
            f"--values {path}: line 1: write a header that names a column for {column_name}: "
            f"{','.join(parts)}; and count, if lines are of several people"
            + (f"; public fields that may be columns: {others}" if others else "")
        )
    for number, row in rows:
        record = dict(zip(head, row, strict=False))
        count = "1" if "count" in parts else record.pop("count", "1").strip()
        if len(row) != len(head) or not count.isdecimal() or len(count) > _MAX_DIGITS:
            raise BadParameter(
                f"--values {path}: line {number}: write a value per column, and a whole number "
                "of people, 0 or more, in the column count"
            )
        public_values = {field: record.pop(field).strip() for field in public}
        value = parts_as_numbers(record, metric) if parted else record["value"]
        yield number, (value, public_values, int(count))


def parts_as_numbers(texts: Mapping[str, str], metric: Metric) -> dict[str, Any]:
    """Reads parts that are numbers as numbers; invalid ones stay texts, and are refused later."""
    values: dict[str, Any] = dict(texts)
    for part, range_of_part in metric.ranges.items():
        if texts[part] not in range_of_part.values:
            with suppress(ValueError):
                number = float(texts[part])
                values[part] = int(number) if number.is_integer() else number
    return values


def coder(metric: Metric) -> Callable[[Any], Any]:
    """Makes a function from a cell of the file to the mechanism's encoding of its value."""
    mechanism: Any = metric.randomizer
    if mechanism.VALUES != "numbers" and not metric.edges:
        read = metric.value_kind.reader(metric)
        return lambda cell: metric.code(read(cell))

    edges = None if metric.edges or not hasattr(mechanism, "edges") else mechanism.edges()

    def number(text: str) -> float:
        if text in (metric.values or ()):
            code: float = metric.code(text)
            return code
        raw_number = float(text)
        if not isfinite(raw_number):
            raise ValueError("not a number")
        value: float = metric.code(int(raw_number) if raw_number.is_integer() else raw_number)
        if edges is None:
            return value
        bucket: int = mechanism.range.bucket(value, mechanism.buckets)
        return float((edges[bucket] + edges[bucket + 1]) / 2)

    return number


Numbers = npt.NDArray[np.int64]

_FIRST: Final = date(1970, 1, 1)
_MAX_DAYS: Final = 1000
_MAX_OF_DAYS: Final = 10**9
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
    def all_counts(self) -> Numbers:
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
    day_place_count_person = [array("q") for _ in range(4)]
    places = [head.index(name) for name in ("day", *names)]
    for line, row in rows:
        try:
            cells = [cell.strip() for cell in row]
            key = tuple(cells[place] for place in places)
            if key not in memo:
                when, *texts = key
                cells_by_name = dict(zip(names, texts, strict=True))
                value = parts_as_numbers(cells_by_name, metric) if parts else texts[0]
                day = (
                    int(when)
                    if _NUMBER.fullmatch(when)
                    else (date.fromisoformat(when) - _FIRST).days
                )
                memo[key] = day, codes.setdefault(code(value), len(codes))
            last = cells[head.index(other)] if other else ""
            count = 1 if other != "count" else _count(last)
        except (ValueOutOfDomain, ValueError, IndexError) as error:
            raise BadParameter(
                f"--values {path}: line {line}: write a day that exists, a value of metric "
                f'"{metric.name}"{_listing(metric, error)}, and in count a whole number of people'
            ) from error
        who = people.setdefault(last, len(people)) if other == "person" else 0
        for column, cell in zip(day_place_count_person, (*memo[key], count, who), strict=True):
            column.append(cell)
    return _days(path, day_place_count_person, tuple(codes), by_person=other == "person")


def _days(
    path: Path,
    day_place_count_person: "Sequence[array[int]]",
    codes: tuple[Any, ...],
    *,
    by_person: bool,
) -> Days:
    """Makes Days from four columns of equal length; a place is the index of the code."""
    day, place, number, person = (
        np.frombuffer(column, np.int64) for column in day_place_count_person
    )
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


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= _MAX_OF_DAYS:
        raise ValueError("not a number of people")
    return count
