"""`hubbub catalog new`: a metric, written into metrics.toml with what each of its fields means."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Final

from hubbub.authoring.auto_mechanism import own_fields
from hubbub.catalog import WRITTEN_EPOCHS, Metric
from hubbub.catalog.breakdown import FIELD
from hubbub.catalog.experiments import Experiment
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.values.value_kind_registry import numeric_kinds
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.catalog_warnings import too_few_reports, too_short_lives, wide_rates
from hubbub.cli.terminal.output import explain, say
from hubbub.cli.terminal.percentile_and_candidate_options import read_percentile
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.fields.field import fields_of
from hubbub.fields.kinds import MAX_EDGES
from hubbub.fields.rules import NAME, Interval
from hubbub.mechanisms.number_range import MAX_FINE_BUCKETS, Range
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.programs.atomic_write import locked, refuse_unwritable, replace_file
from hubbub.programs.command_line import command, read_number, read_whole_number
from hubbub.programs.option_parsing import Exclusive, argument, option, options, read_named_path
from hubbub.programs.text_files import parse_toml, read_text
from hubbub.signing.metric_changes import refuse_ended_experiment

_SCHEMA: Final = "metrics.schema.json"
_YEAR: Final = timedelta(days=365)
# After this many reports the device stops reporting the metric: seven weeks of a daily one.
_LIFETIME_REPORTS: Final = 50
# A device that has stopped is not active.
_ACTIVITY_REPORTS: Final = _YEAR.days
_ENDS_AND_PARTS: Final = 3
_KIND: Final = "number"
_BUCKETS: Final = 64
_MOST: Final = 20
_TWO_ARMS: Final = "control=1,new=1"
_RANGE: Final = dict.fromkeys(("low", "high"), "--range")
_OPTIONS: Final = {**_RANGE, "outside": "--refuse", "weeks": "--retention"}
"""Of fields whose option has another name."""
_REMEDIES: Final = {
    "steps": "write --steps visit,cart,paid",
    "rate": f"write --rate crashed started --most {_MOST}",
    "arms": f"write --arms {_TWO_ARMS}",
    "shuffler": "write --shuffler shuffler.example.org:7070",
}
"""Of fields that the file writes in another form than the command line."""
_BRACKETS: Final = re.compile(r'[\[\]{}"]')
_ARMS: Final = re.compile(r"[a-z0-9_-]+=\d+(,[a-z0-9_-]+=\d+)*")
_VALUES: Final = Exclusive()


def _edges(text: str) -> str:
    ends = text.split(":")
    if len(ends) == 1:
        return f"[{', '.join(repr(read_number(end)) for end in text.split(','))}]"
    if len(ends) != _ENDS_AND_PARTS:
        raise argparse.ArgumentTypeError("write numbers separated by commas, or LOW:HIGH:PARTS")
    low, high = map(read_number, ends[:2])
    return f"{{ from = {low!r}, to = {high!r}, parts = {read_whole_number(ends[2])} }}"


def _read_range(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if not -inf < low < high < inf:
        raise BadParameter(
            f"{name}: must be a number and a larger number; write them like {name} 0 100"
        )
    return ends


def _percentiles(text: str) -> str:
    """Percentiles in TOML; of an option without them, the usual ones."""
    numbers = [f"{read_percentile(part):g}" for part in text.split(",")] if text else []
    return f"[{', '.join(numbers)}]" if numbers else ""


@options
class NewOptions:
    name: str = argument("name of the metric, for apps and analysts")
    catalog: Path = option(
        "the catalog; it is created if missing (%(default)s)",
        default=Path("metrics.toml"),
        read=read_named_path,
    )
    description: str = option(
        "question of the metric, worded for the people who answer it", default=""
    )
    owner: str = option("who is responsible for the metric", default="")
    expires: date | None = option("last day on which devices report (a year from now)")
    values: str | None = option(
        "values that can be reported, separated by commas; true,false for a boolean",
        exclusive=_VALUES,
    )
    edges: str | None = option(
        "for the distribution of a number: the edges of its buckets, separated by commas, or "
        "LOW:HIGH:PARTS for buckets that grow by a constant factor",
        exclusive=_VALUES,
        parse=_edges,
    )
    boolean: bool = option("report true or false", exclusive=_VALUES)
    range: tuple[float, float] | None = option(
        "for a number: its smallest and its largest value; asks for the mean alone, unless "
        "--buckets or --percentiles is given",
        metavar=("LOW", "HIGH"),
        read=_read_range,
        exclusive=_VALUES,
    )
    buckets: int | None = option(
        f"count a number of --range in N equal buckets ({_BUCKETS} with --percentiles)",
        metavar="N",
        within=Interval(2, MAX_FINE_BUCKETS),
        needs="range",
    )
    percentiles: str | None = option(
        "request percentiles instead of buckets: the usual ones of --range (auto chooses wave or "
        "haar), or your own of --range or --edges, as 50,99",
        metavar="P,...",
        parse=_percentiles,
        bare="",
    )
    steps: str | None = option(
        "for a funnel: its steps in order, separated by commas", exclusive=_VALUES
    )
    rate: tuple[str, str] | None = option(
        "for a rate: the event to count, and the event per which it is counted",
        metavar=("OF", "PER"),
        exclusive=_VALUES,
    )
    most: int | None = option(
        f"largest count of either event that a device reports in an epoch ({_MOST})",
        needs="rate",
    )
    activity: bool = option(
        "count the active devices of a day, a week and 28 days", exclusive=_VALUES
    )
    retention: int | None = option(
        "for retention: number of weeks to count after the first",
        metavar="WEEKS",
        exclusive=_VALUES,
    )
    kind: str = option(
        "what the number is; devices check it (%(default)s)",
        default=_KIND,
        choices=tuple(numeric_kinds()),
    )
    unit: str | None = option("unit of the number")
    refuse: bool = option(
        "drop a number outside the range instead of counting it at the nearest end"
    )
    other: bool = option('a text that is not among --values counts as "other"')
    epoch: str = option(
        "length of an epoch, whose reports are added up (day; with --retention, week)",
        default="",
        choices=WRITTEN_EPOCHS,
    )
    epsilon: float = option(
        "largest privacy loss of one report, in nats (1.0)",
        default=1.0,
        within=Interval(MIN_EPSILON, MAX_EPSILON),
    )
    reports: int = option("expected number of reports in an epoch (10000)", default=10_000)
    min_batch: int | None = option(
        "fewest reports that leave the shuffler together (a tenth of --reports, at least 10)"
    )
    experiment: str = option(
        "experiment that the metric measures; it is added if the catalog lacks it", default=""
    )
    arms: str | None = option(
        f"arms of a new experiment with their weights, the control arm first ({_TWO_ARMS})",
        needs="experiment",
    )
    shuffler: str = option(
        "HOST:PORT of the shuffler, for a new catalog (127.0.0.1:7070)", default=""
    )


def packaged_schema() -> str:
    """The JSON Schema of metrics.toml in the package."""
    return (files("hubbub.cli") / _SCHEMA).read_text("utf-8")


@command(
    "catalog new",
    text="write a metric into metrics.toml, field by field",
    description="""
Writes a metric into the catalog, with a comment above each field; the mechanism is chosen when the
catalog is read (mechanism = "auto"). On a terminal it asks for description, owner, values and unit
if no option gives them. It changes no existing metric, and writes only what passes `hubbub catalog
check`.
""",
)
def _add_metric(options: NewOptions) -> None:
    name, path = options.name, options.catalog
    if not NAME.fullmatch(name):
        raise BadParameter(f"a metric's name must match {NAME.pattern}; choose another")
    before = None
    if path.exists():
        try:
            before = read_text(path)
        except ValueError as error:
            raise CatalogInvalid(f"{error}; give a catalog, or a new name for one") from error
    if before is not None and name in _tables(before, "metrics"):
        raise BadParameter(
            f'{path}: already has a metric "{name}"; choose another name, or edit that '
            "metric in the file"
        )
    if before is not None and options.shuffler:
        raise BadParameter(f"--shuffler is only for a new catalog, and {path} exists; leave it out")
    _refuse_unused(options)
    entry = "\n".join([*_experiment(options, before or ""), *_lines(options)])
    if before is None:
        shuffler = _toml_text(options.shuffler or "127.0.0.1:7070")
        text = f"#:schema ./{_SCHEMA}\nshuffler = {shuffler}\n\n{entry}"
    else:
        text = ("" if before.endswith("\n") else "\n") + f"\n{entry}"
    metric = _checked_metric(path, before or "", text, options)
    new = before is None
    schema = path.with_name(_SCHEMA)
    with refuse_unwritable(path, CatalogInvalid), locked(path):
        if (read_text(path) if path.exists() else None) != before:
            raise CatalogInvalid(
                f"{path}: something else changed it meanwhile, so nothing was written; repeat the "
                "command"
            )
        replace_file(path, (b"" if new else path.read_bytes()) + text.encode())
    with refuse_unwritable(schema, CatalogInvalid):
        if new and not schema.exists():
            schema.write_text(packaged_schema(), encoding="utf-8")
    say(f'{path}: metric "{name}" added; see what it reveals: hubbub catalog check {path}')
    warnings = [*too_few_reports([metric]), *too_short_lives([metric]), *wide_rates([metric])]
    for warning in warnings:
        explain(f"warning: {warning}")


def _refuse_unused(options: NewOptions) -> None:
    """Raises BadParameter for options whose field this kind of value lacks, or has smaller."""
    of_numbers = {
        f"--kind {options.kind}": options.kind != _KIND,
        "--unit": options.unit is not None,
        "--refuse": options.refuse,
        "--percentiles": options.percentiles is not None,
    }
    if options.edges and options.percentiles == "":
        raise BadParameter("--percentiles with --edges needs numbers, such as 50,99")
    if options.buckets and options.buckets >= MAX_EDGES and options.percentiles is None:
        raise BadParameter(
            f"--buckets {options.buckets} is outside [2, {MAX_EDGES - 1}]; with --percentiles it "
            f"may be up to {MAX_FINE_BUCKETS}"
        )
    is_number = options.edges or options.range
    texts = []
    unused = ", ".join(name for name, is_set in of_numbers.items() if is_set and not is_number)
    if unused:
        texts.append(f"{unused}: only with --edges and --range")
    if options.other and (is_number or options.boolean or _of_past(options)):
        texts.append("--other: only with --values")
    if texts:
        raise BadParameter(f"{'; '.join(texts)}; leave out what does not apply")


def _tables(text: str, kind: str) -> Mapping[str, object]:
    try:
        tables = parse_toml(text).get(kind, {})
    except ValueError:
        return {}  # the check has a clearer message
    return tables if isinstance(tables, dict) else {}


def _experiment(options: NewOptions, before: str) -> Iterator[str]:
    """Yields the lines of the experiment's table, unless the catalog has it."""
    if not options.experiment:
        return
    if options.experiment in _tables(before, "experiments"):
        if options.arms is not None:
            raise BadParameter(
                f'--arms: the catalog already has experiment "{options.experiment}" with '
                "arms; leave --arms out, or name another experiment"
            )
        return
    if not re.fullmatch(FIELD, options.experiment):
        raise BadParameter(f"--experiment: must match {FIELD}; choose another name")
    weights = _TWO_ARMS if options.arms is None else options.arms
    if not _ARMS.fullmatch(weights):
        raise BadParameter(
            "--arms: write names with weights, whole numbers from 0 on, as control=1,new=1"
        )
    names = [arm.partition("=")[0] for arm in weights.split(",")]
    if len(set(names)) < len(names):
        raise BadParameter("--arms names an arm twice; rename one")
    [arms] = fields_of(Experiment)
    yield f"[experiments.{options.experiment}]"
    yield f"# {arms.entry.meaning}"
    yield f"arms = {{ {weights.replace(',', ', ').replace('=', ' = ')} }}"
    yield ""


def _fields(options: NewOptions) -> dict[str, str]:
    """Each field in TOML: from an option, an answer, or the default."""
    description, owner = options.description, options.owner
    try:
        description = _given_or_prompted(description, "What does the metric ask, in one line?")
        owner = _given_or_prompted(owner, "Who is responsible for it (an address)?")
        reported = _value_fields(options)
    except EOFError:
        raise BadParameter(_missing_options(options)) from None
    today = datetime.now(UTC).date()
    expires = options.expires or today + _YEAR
    if expires < today:
        raise BadParameter(f"--expires {expires} is past, so no device would report it")
    fewest = options.min_batch
    if fewest is None:
        fewest = max(10, options.reports // 10)
        if options.reports < fewest:
            raise BadParameter(
                f"--reports {options.reports} in an epoch would never leave the shuffler, which "
                f"waits for {fewest}: choose a longer --epoch with more --reports, or give "
                "--min-batch"
            )
    lifetime = f"lifetime_epsilon = {_lifetime_reports(options) * options.epsilon!r}"
    return {
        "description": _toml_text(description),
        "owner": _toml_text(owner),
        "expires": str(expires),
        "epoch": _toml_text(options.epoch or ("day" if options.retention is None else "week")),
        **reported,
        **({"percentiles": options.percentiles} if options.percentiles else {}),
        "mechanism": _toml_text(AUTO),
        "reports": str(options.reports),
        "epsilon": repr(options.epsilon),
        "min_batch": str(fewest),
        "limits": f"{{ reports_per_epoch = 1, {lifetime} }}",
        **({"experiment": _toml_text(options.experiment)} if options.experiment else {}),
    }


def _lifetime_reports(options: NewOptions) -> int:
    """The number of reports after which a device stops; as many as the answer needs."""
    if options.activity:
        return _ACTIVITY_REPORTS
    return max(_LIFETIME_REPORTS, 1 + (options.retention or 0))


def _missing_options(options: NewOptions) -> str:
    """The required options that are missing, a line for each, if no terminal can answer."""
    lines = ["there is no terminal to ask on, so these options are needed:"]
    if not options.description.strip():
        lines.append("  --description is needed: what the metric asks, in one line")
    if not options.owner.strip():
        lines.append("  --owner is needed: the address of the person responsible for the metric")
    has_values = options.boolean or options.values or _of_past(options)
    if not (has_values or options.range or options.edges):
        lines.append(
            "  one of --boolean, --values A,B, --edges LOW:HIGH:PARTS or --range LOW HIGH is "
            "needed: what apps report; or, of events, --steps A,B, --rate OF PER, --activity or "
            "--retention WEEKS (write texts that cannot be listed, such as error texts, "
            'into the file, with mechanism = "tree": docs/discover.md)'
        )
    return "\n".join(lines)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _given_or_prompted(text: str, question: str) -> str:
    """The text, or the answer to a question. Raises EOFError if nobody answers."""
    while not text.strip():
        if not _is_terminal():
            raise EOFError
        text = input(f"{question} ")
    return text.strip()


def _toml_text(text: str) -> str:
    """A text in TOML, whose quoting JSON shares."""
    return json.dumps(text, ensure_ascii=False)


def _values(text: str, name: str = "--values") -> str:
    values = [value.strip() for value in text.split(",")]
    if len(values) < 2 or not all(values):  # noqa: PLR2004 one value says nothing
        number = "an empty" if "" in values else "only one"
        raise BadParameter(f"{name} has {number} value; write two or more, separated by commas")
    if sorted(values) == ["false", "true"]:
        return "[false, true]"
    return f"[{', '.join(map(_toml_text, values))}]"


def _refuse_brackets(field: str, events: str) -> None:
    """Raises BadParameter for events written as a list or a table of the file."""
    if _BRACKETS.search(events):
        raise BadParameter(
            f"--{field}: an event contains a bracket, a brace or a quote; {_REMEDIES[field]}"
        )


def _of_past(options: NewOptions) -> dict[str, str]:
    """The fields of a kind that devices compute from their past; none for other kinds."""
    if options.steps is not None:
        _refuse_brackets("steps", options.steps)
        return {"kind": _toml_text("funnel"), "steps": _values(options.steps, "--steps")}
    if options.rate:
        _refuse_brackets("rate", "".join(options.rate))
        numerator, denominator = map(_toml_text, options.rate)
        most = _MOST if options.most is None else options.most
        return {"rate": f"{{ of = {numerator}, per = {denominator}, most = {most} }}"}
    if options.activity:
        return {"kind": _toml_text("activity")}
    if options.retention is not None:
        return {"kind": _toml_text("retention"), "weeks": str(options.retention)}
    return {}


def _value_fields(options: NewOptions) -> dict[str, str]:
    if options.boolean:
        return {"kind": _toml_text("boolean")}
    if past := _of_past(options):
        return past
    if options.range:
        low, high = options.range
        number = {"low": repr(low), "high": repr(high)}
        if options.percentiles is not None:
            number["buckets"] = str(options.buckets or _BUCKETS)
        elif options.buckets:  # mechanisms over listed values have the least error of one bucket
            edges = Range(low, high).edges(options.buckets)
            number = {"edges": f"[{', '.join(map(repr, edges))}]"}
    elif options.edges:
        number = {"edges": options.edges}
    else:
        values = options.values
        if values is None:
            values = _given_or_prompted("", "Which values can be reported (separated by commas)?")
        return {"values": _values(values)} | ({"other": "true"} if options.other else {})
    unit = options.unit
    if unit is None and _is_terminal():
        with suppress(EOFError):
            unit = input("Which unit does it have, such as ms (empty: none)? ").strip()
    fields = {"kind": _toml_text(options.kind), **number}
    if unit:
        fields["unit"] = _toml_text(unit)
    return fields | ({"outside": _toml_text("refuse")} if options.refuse else {})


def _lines(options: NewOptions) -> Iterator[str]:
    """Yields the lines of the metric's table, each field below its meaning."""
    name, fields = options.name, _fields(options)
    auto_fields = own_fields(json.loads(fields["mechanism"]))
    meanings = {item.name: item.entry.meaning for item in [*auto_fields, *fields_of(Metric)]}
    for field in fields_of(Metric):
        meanings |= {other: says.meaning for other, says in field.entry.others.items()}
    meanings["limits"] += (
        f" With this value a device stops after {_lifetime_reports(options)} reports of its own."
    )
    yield f"[metrics.{_toml_text(name) if '.' in name else name}]"
    for key, value in fields.items():
        yield f"# {meanings[key]}"
        yield f"{key} = {value}"
    yield ""


def _checked_metric(path: Path, before: str, text: str, options: NewOptions) -> Metric:
    """The new metric. Raises CatalogInvalid, which names options for invalid fields of `text`."""
    option_names = _OPTIONS | ({"edges": "--buckets"} if options.buckets else {})
    owners = rf'metric "{re.escape(options.name)}", |experiment "{re.escape(options.experiment)}", '
    place = re.compile(rf'{re.escape(str(path))}:(\d+): (?:{owners}|)field "(\w+)"')

    def option_of(field: str) -> str:
        return option_names.get(field, f"--{field.replace('_', '-')}")

    def typed(line: str) -> str:
        """A line of the message, in the form of the command line."""
        invalid = place.match(line)
        if not invalid or int(invalid[1]) <= before.count("\n"):
            return line  # of what the file had
        field, problem = invalid[2], line[invalid.end() :]
        if field in _REMEDIES:
            problem = re.sub(r"(?<=; )write .*", _REMEDIES[field], problem)
        problem = problem.replace("a table of from, to and parts", "LOW:HIGH:PARTS")
        problem = re.sub(r"(?<=; write )(\w+) =(?= )", lambda match: option_of(match[1]), problem)
        return f"{option_of(field)}{problem}"

    try:
        metric = read_aloud(path, before + text).metrics[options.name]
        refuse_ended_experiment(metric)
    except CatalogInvalid as error:
        message = "\n".join(map(typed, str(error).splitlines()))
        raise CatalogInvalid(f"{message}\nnothing was written; fix that first") from None
    return metric
