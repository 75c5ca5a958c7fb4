"""`hubbub catalog`: checks a catalog; writes its schema and typed modules for editors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import ceil, isfinite
from pathlib import Path
from typing import Any, Final

from hubbub.authoring.crowds.accountant import minimum
from hubbub.authoring.typed_modules import FIRST_LINES, python_module, typescript_module
from hubbub.catalog import Metric
from hubbub.catalog.crowds.central_conflicts import CROWD_TREE
from hubbub.catalog.crowds.crowd import CROWD_PARTS
from hubbub.catalog.discovery import finder_of
from hubbub.catalog.values.sets_and_vectors import Vector
from hubbub.cli.command_table import load_module
from hubbub.cli.commands.catalog_new_metric import packaged_schema
from hubbub.cli.terminal.catalog_reading import CatalogOptions, kept_mechanisms, read_aloud
from hubbub.cli.terminal.catalog_warnings import (
    obsolete_metrics,
    too_few_reports,
    too_short_lives,
    wide_rates,
)
from hubbub.cli.terminal.output import explain, listing, say
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most, several
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.vector_codes import pool_for
from hubbub.privacy.epsilon_words_and_advice import loud_reports, year_of_reports
from hubbub.programs.atomic_write import write_output
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import (
    Exclusive,
    argument,
    option,
    options,
    read_existing,
    read_named_path,
)
from hubbub.programs.text_files import unreadable

# Of vectors: from so many times the squared error on, a check warns.
_MAX_BOOKS_EXCESS: Final = 1.08
_COLUMNS: Final[Mapping[str, str | Callable[[Metric], str]]] = {
    "metric": "{name}",
    "mechanism": "{mechanism}",
    "values": lambda metric: (
        metric.randomizer.VALUES if metric.values is None else str(len(metric.values))
    ),
    "epsilon per report": lambda metric: at_most(metric.report_loss, ".3f"),
    "per unchanged value": lambda metric: (
        at_most(metric.lifetime_loss, ".3f") if isfinite(metric.lifetime_loss) else ""
    ),
    "lifetime limit": "{limits.lifetime_epsilon:g}",
    "payload bytes": "{randomizer.layout.payload_bytes}",
    "min batch": "{min_batch:,}",
}


@options
class BuildOptions:
    catalog: Path = argument("the catalog (%(default)s)", default=Path("metrics.toml"))
    keys: Path = option("folder made by hubbub keys new")
    out: Path = option(
        "file for the bundle (%(default)s)", default=Path("app.hubbub"), read=read_named_path
    )
    operator_out: Path | None = option(
        "file for the bundle of the aggregator (operator.hubbub beside --out)"
    )
    streams: Path = option(
        "file for the stream table of the shuffler (%(default)s)", default=Path("streams.json")
    )
    previous: Path | None = option(
        "bundle to compare with (the bundle at --out, if there is one)", read=read_existing
    )
    roots: Path | None = option("PEM file of the certificate authority of the shuffler")
    log: Path | None = option(
        "folder of the transparency log, which a web server can serve, if the catalog names a log "
        "(log beside --out)"
    )


@command("catalog check", text="check a catalog, show what each metric reveals")
def _check(options: CatalogOptions) -> None:
    catalog = read_aloud(options.catalog)
    chosen_now = [*catalog.metrics.values()]
    metrics = [*options.last.continued(catalog, refuse=True).values()]
    listing(str(options.catalog), metrics, _COLUMNS, text_columns=2)
    for line in kept_mechanisms(catalog, metrics):
        explain(line)
    for metric in metrics:
        if metric.central:
            _say_promise(metric)
        if metric.candidates:
            candidates = several(len(metric.candidates), "candidate string")
            explain(f"{metric.name}: looks for {candidates}")
        if metric.discover:
            tree = finder_of(metric)
            explain(
                f"{metric.name}: {metric.discover:g} of its devices feed {tree.name}, whose own "
                f"minimum batch is {several(tree.fewest, 'report')}, about "
                f"{ceil(tree.fewest / metric.discover):,} of all reports"
            )
        if metric.choice:
            explain(f"{metric.name}: {metric.choice}")
        if metric.tiers:
            tiers = ", ".join(f"{epsilon:g}" for epsilon in metric.tiers)
            explain(f"{metric.name}: a person may choose epsilon {tiers} instead")
    explain(year_of_reports(metrics))
    warnings = [
        *obsolete_metrics(catalog),
        *loud_reports(metrics),
        *too_few_reports(chosen_now),
        *_too_few_books(chosen_now),
        *too_short_lives(metrics),
        *wide_rates(metrics),
    ]
    for warning in warnings:
        explain(f"warning: {warning}")
    result = several(len(warnings), "warning") if warnings else "no problem found"
    explain(f"{options.catalog}: {several(len(metrics), 'metric')}, {result}")


def _too_few_books(metrics: Sequence[Metric]) -> Iterator[str]:
    """Yields a warning for each vector whose expected reports share too few books.

    Without scipy, as after a bare install, it yields none.
    """
    for metric in metrics:
        if not (metric.choice and isinstance(metric.value_kind, Vector) and find_spec("scipy")):
            continue
        from hubbub.analysis.families.vector import books_excess  # noqa: PLC0415 of vectors alone

        codes: Any = metric.randomizer
        reports = metric.choice.reports
        if (excess := books_excess(codes, reports)) > _MAX_BOOKS_EXCESS:
            advice = "lower epsilon"
            best = replace(codes, **pool_for(codes.epsilon, reports, codes.dimensions))
            alone = best.squared_error / codes.squared_error
            less = alone * max(books_excess(best, reports), 1.0)
            if less < excess:
                pool = f"words = {best.words} and books = {best.books}"
                advice = f"with {pool}, as chosen if both are left out, it is {less:.3g} times"
            yield (
                f"{metric.name}: if people have equal vectors, {reports:,} reports by "
                f"{codes.books:,} shared books have {excess:.3g} times the squared error of one "
                f"book for each: {advice}"
            )


def _say_promise(metric: Metric) -> None:
    """Prints the central epsilon of one epoch and of several, and what limits it."""
    # Imports numpy and scipy, which reading the promise needed already.
    from hubbub.privacy.crowd_guarantees import (  # noqa: PLC0415 others need neither
        all_epochs_sentence,
        promise_epsilon_of,
        shuffled_of,
    )
    from hubbub.privacy.exact_accountant import what_decides  # noqa: PLC0415 as above
    from hubbub.privacy.noisy_count_privacy import count_sentence  # noqa: PLC0415 as above

    promise, lies = shuffled_of(metric), even_lies(metric.randomizer, metric.report_loss)
    explain(
        f"{metric.name}: a whole epoch of {promise.reports:,} reports or more reveals epsilon "
        f"{at_most(promise.epsilon, '.4g')} at delta {promise.delta:g} of one person, "
        f"{promise.assumption}"
    )
    if sentence := all_epochs_sentence(metric):
        explain(f"{metric.name}:{sentence}")
    if sentence := count_sentence(metric):
        waits = f"The shuffler waits for {minimum(metric):,} reports and dummies."
        explain(f"{metric.name}:{sentence} {waits}")
    if metric.central and (
        sentence := what_decides(
            metric.central,
            metric.report_loss,
            promise_epsilon_of(metric),
            lies.categories,
            lies.groups,
            coarse=metric.mechanism in (CROWD_TREE, CROWD_PARTS),
        )
    ):
        explain(f"{metric.name}: {sentence}")


@command("catalog build", text="sign the bundle that apps ship")
def _build(options: BuildOptions) -> None:
    load_module("catalog_build", "hubbub catalog build", "cli").build(options)


@command("catalog schema", text="print the JSON Schema of metrics.toml, for editors")
def _schema() -> None:
    say(packaged_schema().rstrip())


_MODULE: Final = Exclusive(required=True)


@command(
    "catalog codegen",
    text="write the metrics as a module, for type checkers",
    description="""
Writes a Python module with an object for each metric. An app reports with
`metrics.theme.report("dark")` and gets its arm from `metrics.arm_new_menu(client)`; mypy and
pyright find wrong names and values. With --typescript it writes a module for pages and Node:
`report(client, "theme", "dark")` and `arm(client, "new_menu")`. With --check it writes
nothing, and the exit code shows whether the file fits the catalog: use it in a test.
""",
)
def _codegen(
    *,
    catalog: Path = argument("the catalog (%(default)s)", default=Path("metrics.toml")),
    python: Path | None = option("file for the Python module", metavar="FILE", exclusive=_MODULE),
    typescript: Path = option(
        "file for the TypeScript module", default=Path(), metavar="FILE", exclusive=_MODULE
    ),
    check: bool = option(
        "write nothing, and fail if the file differs from the module that would be written"
    ),
) -> None:
    definitions = read_aloud(catalog)
    name, path, module = "--typescript", typescript, typescript_module
    if python:
        name, path, module = "--python", python, python_module
    module_text = "\n".join(module(definitions))
    try:
        existing = path.read_text("utf-8") if path.exists() else None
        if existing is not None and not existing.startswith(FIRST_LINES[name]):
            raise BadParameter(f"{path}: was not made by codegen; give another file, or move it")
        if check and existing != module_text:
            raise BadParameter(
                f"{path}: does not match {catalog}; run: hubbub catalog codegen "
                f"{catalog} {name} {path}"
            )
    except (OSError, UnicodeDecodeError) as error:
        raise BadParameter(f"{path}: {unreadable(error)}; name another file") from error
    if not check:
        write_output(name, path, module_text)
    done = "up to date" if check else "written"
    say(f"{path}: {several(len(definitions.metrics), 'metric')}, {done}")
