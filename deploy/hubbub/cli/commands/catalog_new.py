"""`hubbub catalog new`: a metric, written into metrics.toml with what each of its fields means."""

import argparse
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Final

from hubbub.catalog import WRITTEN_EPOCHS, Metric
from hubbub.catalog.choice import AUTO, own_fields
from hubbub.catalog.values.value_kinds import NUMERIC
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.errors.text_files import parse_toml, read_text
from hubbub.fields.field import fields_of
from hubbub.fields.rules import NAME

_SCHEMA: Final = "metrics.schema.json"
_YEAR: Final = timedelta(days=365)
# So many reports, and the device says no more of this metric: seven weeks of a daily one.
_LIFETIME_REPORTS: Final = 50
_ENDS_AND_PARTS: Final = 3
_OPTIONS: Final = {"low": "--range", "high": "--range", "outside": "--refuse"}
"""Of fields whose option has another name."""
_WHAT: Final = (
    "what apps report: --boolean, --values A,B, --edges LOW:HIGH:PARTS or --range LOW HIGH (texts "
    'that cannot be listed, such as error texts, are written by hand, with mechanism = "tree": '
    "docs/discover.md)"
)
"""The options of which a new metric takes one."""
_DESCRIPTION: Final = """
Writes a metric into the catalog, with a comment above each field; the mechanism is chosen by the
planner (mechanism = "auto"). On a terminal it asks for what no option says. Nothing that is there
is changed, and what would not pass `hubbub catalog check` is not written.
"""


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `new` to `hubbub catalog`."""
    new = actions.add_parser(
        "new", help="write a metric into metrics.toml, field by field", description=_DESCRIPTION
    )
    new.add_argument("name", help="what apps and analysts call it")
    new.add_argument(
        "--catalog",
        type=Path,
        default=Path("metrics.toml"),
        help="the catalog, made if there is none (%(default)s)",
    )
    new.add_argument("--description", help="what is asked, as people read it")
    new.add_argument("--owner", help="who asks, and answers questions about it")
    new.add_argument("--expires", help="the last day of reports, YYYY-MM-DD (in a year)")
    what = new.add_mutually_exclusive_group()
    what.add_argument(
        "--values", help="what can be reported, with commas between; true,false for a boolean"
    )
    what.add_argument(
        "--edges",
        help="a number, and how it is spread: where its range is cut, with commas between, or "
        "LOW:HIGH:PARTS for steps that grow by one factor",
    )
    what.add_argument("--boolean", action="store_true", help="true or false")
    what.add_argument(
        "--range", nargs=2, metavar=("LOW", "HIGH"), help="a number between two, for its mean"
    )
    new.add_argument(
        "--kind",
        choices=NUMERIC,
        default="number",
        help="what the number is, which devices check (%(default)s)",
    )
    new.add_argument("--unit", help="what the number is measured in")
    new.add_argument(
        "--refuse", action="store_true", help="a number outside is not counted at the nearest end"
    )
    new.add_argument(
        "--other", action="store_true", help='a text that is not among --values counts as "other"'
    )
    new.add_argument("--epoch", choices=WRITTEN_EPOCHS, help="how long reports add up (day)")
    new.add_argument("--epsilon", help="the most that one report says, in nats (1.0)")
    new.add_argument("--reports", help="how many reports you expect of an epoch (10000)")
    new.add_argument("--min-batch", help="the fewest that leave together (a tenth, 10 at least)")
    new.add_argument(
        "--shuffler", help="HOST:PORT of a new catalog's shuffler (127.0.0.1:7070, here)"
    )
    new.set_defaults(run=_run)


def packaged_schema() -> str:
    """The JSON Schema of metrics.toml, as the package has it."""
    return (files("hubbub.cli") / _SCHEMA).read_text("utf-8")


def _run(arguments: argparse.Namespace) -> int:
    name, path = arguments.name, arguments.catalog
    if not NAME.fullmatch(name):
        raise BadParameter(f"a metric's name must match {NAME.pattern}; choose another")
    before = _read(path)
    if before is not None and name in _metrics(before):
        raise BadParameter(
            f'{path}: there is a metric "{name}" already; nothing is overwritten: choose another '
            "name, or change that one in the file"
        )
    if before is not None and arguments.shuffler:
        raise BadParameter(f"--shuffler is for a new catalog, and {path} has one; leave it out")
    entry = "\n".join(_lines(name, _told(arguments)))
    if before is None:
        shuffler = json.dumps(arguments.shuffler or "127.0.0.1:7070", ensure_ascii=False)
        text = f"#:schema ./{_SCHEMA}\nshuffler = {shuffler}\n\n{entry}"
    else:
        text = ("" if before.endswith("\n") else "\n") + f"\n{entry}"
    _check(path, (before or "") + text, name)
    _append(path, text, new=before is None)
    say(f'{path}: metric "{name}" added; see what it reveals: hubbub catalog check {path}')
    return 0


def _read(path: Path) -> str | None:
    """The catalog as it is, or None if there is none."""
    if not path.exists():
        return None
    try:
        return read_text(path)
    except ValueError as error:
        raise CatalogInvalid(f"{error}; give a catalog, or a new name for one") from error


def _metrics(text: str) -> Mapping[str, object]:
    try:
        metrics = parse_toml(text).get("metrics", {})
    except ValueError:
        return {}  # which the check tells better
    return metrics if isinstance(metrics, dict) else {}


def _told(arguments: argparse.Namespace) -> dict[str, str]:
    """Each field as TOML writes it: of an option, of an answer, or as is usual."""
    ask = sys.stdin.isatty() and sys.stdout.isatty()
    description = _asked(arguments.description, "--description", "What is asked, in a line?", ask)
    owner = _asked(arguments.owner, "--owner", "Who answers for it (an address)?", ask)
    values = _reported(arguments, ask=ask)
    expires = arguments.expires or (datetime.now(UTC).date() + _YEAR).isoformat()
    try:
        over = date.fromisoformat(expires) < datetime.now(UTC).date()
    except ValueError:
        raise BadParameter("--expires is no date; write YYYY-MM-DD") from None
    if over:
        raise BadParameter(f"--expires {expires} is past, so no device would report it")
    epsilon = _number(arguments.epsilon or "1.0", "--epsilon")
    reports = _whole(arguments.reports or "10000", "--reports")
    fewest = _whole(arguments.min_batch or str(max(10, reports // 10)), "--min-batch")
    lifetime = f"lifetime_epsilon = {_LIFETIME_REPORTS * epsilon!r}"
    return {
        "description": _quoted(description),
        "owner": _quoted(owner),
        "expires": expires,
        "epoch": _quoted(arguments.epoch or "day"),
        **values,
        "mechanism": _quoted(AUTO),
        "reports": str(reports),
        "epsilon": repr(epsilon),
        "min_batch": str(fewest),
        "limits": f"{{ reports_per_epoch = 1, {lifetime} }}",
    }


def _asked(given: str | None, option: str, question: str, ask: bool) -> str:  # noqa: FBT001 whether there is somebody to ask
    while given is None or not given.strip():
        if not ask:
            raise BadParameter(f"{option} is needed: there is no terminal to ask on; give it")
        try:
            given = input(f"{question} ")
        except EOFError:
            ask = False
    return given.strip()


def _quoted(text: str) -> str:
    """As TOML writes a text, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False)


def _values(told: str) -> str:
    values = [one.strip() for one in told.split(",")]
    if len(values) < 2:  # noqa: PLR2004 one value says nothing
        raise BadParameter("--values is one value alone; give two or more, with commas between")
    if sorted(values) == ["false", "true"]:
        return "[false, true]"
    return f"[{', '.join(map(_quoted, values))}]"


def _reported(arguments: argparse.Namespace, *, ask: bool) -> dict[str, str]:
    """The fields that say what can be reported."""
    if arguments.boolean:
        return {"kind": _quoted("boolean")}
    if arguments.range is None and arguments.edges is None:
        question = "What can be reported (values with commas between)?"
        values = _asked(arguments.values, _WHAT, question, ask)
        return {"values": _values(values)} | ({"other": "true"} if arguments.other else {})
    if arguments.unit is None and ask:
        arguments.unit = input("What is it measured in, as ms (nothing: no unit)? ").strip()
    told = {"kind": _quoted(arguments.kind)}
    if arguments.edges is not None:
        told["edges"] = _edges(arguments.edges)
    else:
        low, high = (_number(end, "--range") for end in arguments.range)
        told |= {"low": repr(low), "high": repr(high)}
    unit = {"unit": _quoted(arguments.unit)} if arguments.unit else {}
    return told | unit | ({"outside": _quoted("refuse")} if arguments.refuse else {})


def _edges(told: str) -> str:
    ends = told.split(":")
    if len(ends) == 1:
        return f"[{', '.join(repr(_number(one, '--edges')) for one in told.split(','))}]"
    if len(ends) != _ENDS_AND_PARTS:
        raise BadParameter("--edges are numbers with commas between, or LOW:HIGH:PARTS")
    low, high = (_number(one, "--edges") for one in ends[:2])
    return f"{{ from = {low!r}, to = {high!r}, parts = {_whole(ends[2], '--edges')} }}"


def _number(text: str, option: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadParameter(f"{option} is no number; write one, as 0.5")
    return number


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadParameter(f"{option} is no whole number; write one, as 100") from None


def _lines(name: str, told: Mapping[str, str]) -> Iterator[str]:
    """The metric's table, each field below what it means."""
    meanings = {one.name: one.entry.meaning for one in [*own_fields(AUTO), *fields_of(Metric)]}
    for field in fields_of(Metric):
        meanings |= {other: says.meaning for other, says in field.entry.others.items()}
    meanings["limits"] += (
        f" As it stands here a device stops after {_LIFETIME_REPORTS} reports of its own."
    )
    yield f"[metrics.{_quoted(name) if '.' in name else name}]"
    for said, value in told.items():
        yield f"# {meanings[said]}"
        yield f"{said} = {value}"
    yield ""


def _check(path: Path, text: str, name: str) -> None:
    """Raises CatalogInvalid unless the catalog would be one: read beside it, for its files.

    What is wrong with the metric of this name is told by its options: no file has its lines.
    """
    folder = path.resolve().parent
    try:
        descriptor, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
    except OSError as error:
        raise CatalogInvalid(f"{folder}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        read_aloud(Path(made))
    except CatalogInvalid as error:
        own = rf'{re.escape(str(path))}:\d+: metric "{re.escape(name)}", field "(\w+)"'
        told = re.sub(own, _option_of, str(error).replace(made, str(path)))
        raise CatalogInvalid(f"{told}\nnothing was written; mend that first") from None
    finally:
        Path(made).unlink()


def _option_of(found: re.Match[str]) -> str:
    """What gave the new metric's field."""
    return _OPTIONS.get(found[1], f"--{found[1].replace('_', '-')}")


def _append(path: Path, text: str, *, new: bool) -> None:
    try:
        with path.open("x" if new else "a", encoding="utf-8") as file:
            file.write(text)
        schema = path.with_name(_SCHEMA)
        if new and not schema.exists():
            schema.write_text(packaged_schema(), encoding="utf-8")
    except OSError as error:
        raise CatalogInvalid(f"{error.filename}: cannot be written: {error.strerror}") from error
