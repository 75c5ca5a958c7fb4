"""Reads the truth of a rehearsal: a file of values, with how many people hold each."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, Final

from hubbub.catalog import Metric, cell_of
from hubbub.catalog.experiments import Experiment
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.errors.grammar import did_you_mean
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
                f'"{metric.name}"; correct it, or the catalog'
            ) from error
        name = metric.values[value] if metric.edges and metric.values else str(text)
        names.setdefault(value, name)
        if experiment := metric.experiment:
            _check_arm(path, number, public.get(experiment.name), experiment)
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


def _check_arm(path: Path, number: int, arm: str | None, experiment: Experiment) -> None:
    """Raises BadParameter for a name of no arm; a device outside the experiment has none."""
    if arm and arm not in experiment.arms:
        raise BadParameter(
            f'--values {path}: line {number}: experiment "{experiment.name}" has no such arm, but '
            f"{', '.join(experiment.arms)}; a device in no arm has an empty cell"
            f"{did_you_mean(arm, experiment.arms)}"
        )


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
                f"--values {path}: line {number}: write a value per column, and in count a whole "
                "number of people, from 0 on"
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
