"""`hubbub query` and `hubbub status`."""

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.analysis import norm_sub, simplex
from hubbub.analysis.intervals import Floats
from hubbub.cli.remote import LAW, Endpoints, estimate, law, read_endpoints, whole
from hubbub.cli.show import say, table
from hubbub.errors import BadParameter
from hubbub.wire.v1.services_pb2 import EstimateResponse, ValueEstimate

__all__ = ["add", "add_where", "answer_json", "balance", "read_candidates", "where"]

_FIELDS = ("value", "estimate", "stderr", "low", "high", "share", "detected", "fitted")
# More rows than this are for a file, not for eyes; the rest is in json and csv.
_ROWS = 50
_HISTOGRAMS: Final[dict[str, Callable[[Floats, Floats, float], Floats]]] = {
    "norm_sub": lambda estimates, _variances, reports: norm_sub(estimates, reports),
    "simplex": simplex,
}
# Two services are asked one after the other: reports that move in between show up on no side.
_TRIES = 10
_PAUSE_SECONDS = 0.3


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `query` and `status` to the command line."""
    query = commands.add_parser("query", help="estimates of one metric, with their intervals")
    query.add_argument("metric")
    when = query.add_mutually_exclusive_group()
    when.add_argument("--epoch", type=int, action="append", default=[], help="(repeat to add up)")
    when.add_argument("--last", type=int, default=0, help="the last N epochs, up to now")
    query.add_argument("--candidates", type=Path, help="file of strings to look for, one a line")
    query.add_argument("--format", choices=("table", "json", "csv"), default="table")
    query.add_argument(
        "--histogram",
        choices=tuple(_HISTOGRAMS),
        help="add a column that is >= 0 and adds up to the reports; biased for single values",
    )
    add_where(query)
    query.set_defaults(run=_query)
    status = commands.add_parser("status", help="the conservation law: where every report is")
    status.add_argument("--format", choices=("table", "json"), default="table")
    add_where(status)
    status.set_defaults(run=_status)


def balance(terms: dict[str, int]) -> bool:
    """Whether everything acknowledged is somewhere, and once."""
    return terms["acknowledged"] == sum(terms[term] for term in LAW[1:])


def read_candidates(path: Path) -> list[str]:
    """The lines of a text file, plain or .gz, without repeats.

    Raises:
        BadParameter: it cannot be read as text, or holds nothing.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadParameter(f"--candidates {path}: cannot be read as text: {error}") from error
    lines = list(dict.fromkeys(line for line in text.splitlines() if line))
    if not lines:
        raise BadParameter(f"--candidates {path}: no line in it; write one string a line")
    return lines


def answer_json(found: EstimateResponse) -> dict[str, Any]:
    """An answer as JSON-ready data."""
    return {
        "metric": found.metric,
        "epochs": list(found.epochs),
        "reports": found.reports,
        "mechanism": found.mechanism,
        "epsilon": found.epsilon,
        "confidence": found.confidence,
        "kind": found.kind,
        "plausibility": found.plausibility,
        "findings": list(found.findings),
        "shuffled": _shuffled_json(found),
        "values": [{field: _cell(v, field) for field in _FIELDS} for v in found.values],
    }


def _shuffled_json(found: EstimateResponse) -> dict[str, Any] | None:
    if not found.HasField("shuffled"):
        return None
    fields = ("epsilon", "delta", "reports", "assumption")
    return {field: getattr(found.shuffled, field) for field in fields}


def _cell(value: ValueEstimate, field: str) -> Any:  # noqa: ANN401 text, number, yes or no, or none
    return getattr(value, field) if field != "fitted" or value.HasField("fitted") else None


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the services are."""
    parser.add_argument(
        "--home", type=Path, default=Path(".hubbub"), help="folder of `hubbub up` (%(default)s)"
    )
    parser.add_argument("--query", help="HOST:PORT of the aggregator's queries, without --home")
    parser.add_argument("--shuffler-status", help="HOST:PORT of the shuffler's status")
    parser.add_argument("--tls", help="folder of certificates; plain text without it")


def where(given: argparse.Namespace) -> Endpoints:
    """Where they are, as chosen."""
    if given.query or given.shuffler_status:
        return Endpoints(given.query or "", given.shuffler_status or "", given.tls)
    return read_endpoints(given.home)


def _query(given: argparse.Namespace) -> int:
    for name, numbers in (("--epoch", given.epoch), ("--last", [given.last])):
        if not all(0 <= number < 1 << 32 for number in numbers):
            raise BadParameter(f"{name} is outside [0, 2**32)")
    candidates = read_candidates(given.candidates) if given.candidates else []
    found = estimate(where(given), given.metric, given.epoch, given.last, candidates)
    extra = _histogram(found, given.histogram) if given.histogram else [{} for _ in found.values]
    if given.format == "json":
        document = answer_json(found)
        for value, more in zip(document["values"], extra, strict=True):
            value.update(more)
        say(json.dumps(document, indent=1, ensure_ascii=False))
    elif given.format == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(("metric", "reports", "epsilon", *_FIELDS, *extra[0]))
        for value, more in zip(found.values, extra, strict=True):
            fields = (_cell(value, field) for field in _FIELDS)
            writer.writerow((found.metric, found.reports, found.epsilon, *fields, *more.values()))
    else:
        _show(found, extra)
    return 0


def _histogram(found: EstimateResponse, name: str) -> list[dict[str, float]]:
    """Per value what the post-processing step of this name makes of it."""
    if found.kind == "mean":
        raise BadParameter(f"--histogram {name}: {found.metric} is a mean, not a histogram")
    estimates = np.array([value.estimate for value in found.values])
    variances = np.array([value.stderr for value in found.values]) ** 2
    return [{name: cell} for cell in _HISTOGRAMS[name](estimates, variances, found.reports)]


def _show(found: EstimateResponse, extra: list[dict[str, float]]) -> None:
    for value, more in zip(found.values, extra, strict=True):
        if value.HasField("fitted"):
            more["fitted"] = value.fitted
    values = list(zip(found.values, extra, strict=True))
    if found.kind == "values":
        values.sort(key=lambda pair: -pair[0].estimate)
    level = f"{found.confidence:.0%} interval"
    digits = ",.5g" if found.kind == "mean" else ",.0f"
    rows = [
        (
            value.value,
            f"{value.estimate:{digits}}",
            f"{value.stderr:{digits}}",
            f"{value.low:{digits}} to {value.high:{digits}}",
            f"{value.share:.1%}",
            "yes" if value.detected else "",
            *(f"{cell:{digits}}" for cell in more.values()),
        )
        for value, more in values[:_ROWS]
    ]
    table(
        f"{found.metric}: {found.reports:,} reports, {found.mechanism}, "
        f"epsilon {found.epsilon:.3f} per report, epochs {_spans(found.epochs)}",
        ("value", "estimate", "std. error", level, "share", "detected", *extra[0]),
        rows,
    )
    if found.HasField("shuffled"):
        shuffled = found.shuffled
        say(
            f"shuffled: a report says epsilon {shuffled.epsilon:.3g} at delta {shuffled.delta:g}, "
            f"among {shuffled.reports:,} in its batch at least, {shuffled.assumption}"
        )
    for finding in found.findings:
        say(f"NOT FROM HONEST REPORTS ALONE (p <= {found.plausibility:.0e}): {finding}")
    if len(values) > _ROWS:
        say(f"... and {len(values) - _ROWS:,} more values: --format csv shows them all")


def _spans(epochs: Sequence[int]) -> str:
    """1-3, 5 for 1, 2, 3, 5."""
    spans: list[list[int]] = []
    for epoch in epochs:
        if spans and epoch == spans[-1][-1] + 1:
            spans[-1][1:] = [epoch]
        else:
            spans.append([epoch])
    return ", ".join("-".join(map(str, span)) for span in spans)


def _status(given: argparse.Namespace) -> int:
    asked = where(given)
    if not (asked.query and asked.shuffler_status):
        raise BadParameter("status asks both services: give --query and --shuffler-status")
    for _ in range(_TRIES):
        windows = law(asked)
        if all(map(balance, windows.values())):
            break
        time.sleep(_PAUSE_SECONDS)
    rows = [(stream, str(epoch), terms) for (stream, epoch), terms in windows.items()]
    total = whole(windows.values())
    rows.append(("all", "", total))
    if given.format == "json":
        lines = [
            {"stream": stream, "epoch": epoch, **terms, "balanced": balance(terms)}
            for (stream, epoch), terms in windows.items()
        ]
        say(json.dumps({"windows": lines, **total, "balanced": balance(total)}, indent=1))
    else:
        table(
            "acknowledged = pooled + in flight + counted + duplicate + rejected + withheld",
            ("stream", "epoch", *(term.replace("_", " ") for term in LAW), "balanced"),
            [
                (stream, epoch, *(f"{terms[t]:,}" for t in LAW), "yes" if balance(terms) else "NO")
                for stream, epoch, terms in rows
            ],
            text_columns=2,
        )
    return 0 if all(balance(terms) for _, _, terms in rows) else 1
