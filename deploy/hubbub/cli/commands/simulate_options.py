"""The options of `hubbub simulate`."""

from pathlib import Path
from typing import Final

from hubbub.cli.terminal.catalog_reading import LastBundle
from hubbub.cli.terminal.percentile_and_candidate_options import PercentileOptions
from hubbub.cli.terminal.query_options import confidence_option
from hubbub.fields.rules import Interval
from hubbub.programs.option_parsing import argument, option, options

RUNS: Final = 200
"""How often a metric is rehearsed, unless asked otherwise."""
FEWER_RUNS: Final = "fewer --runs take less, and give a coarser summary"
"""What is said where all runs take long."""


@options
class SimulateOptions:
    metric: str = argument("name of a metric or of a model in the catalog")
    catalog: Path = option("the catalog (%(default)s)", default=Path("metrics.toml"))
    last: LastBundle
    values: Path = option(
        "CSV, plain or .gz, or - for standard input: one value per line, or value,count; the "
        "values of a set are separated by |. Other kinds need a header: each part, public field or "
        "coordinate; day, value, and person or count; each model feature and label",
        metavar="FILE",
    )
    test: Path | None = option(
        "for a model: CSV of people who do not train it, but evaluate it", metavar="FILE"
    )
    reports: int | None = option(
        "draw N people from a population like that of the file",
        metavar="N",
        within=Interval(1, 10**12),
    )
    epochs: int = option(
        "number of epochs in which the same people report (%(default)s)",
        default=1,
        within=Interval(1, 1000),
    )
    runs: int | None = option(
        f"number of repetitions ({RUNS}; a model 5 times)", within=Interval(1, 100_000)
    )
    seed: int | None = option(
        "seed of the random numbers; without it every call draws others", within=Interval(0)
    )
    candidates: Path | None = option("file of strings to look for, besides those of --values")
    confidence: float = confidence_option("the intervals")
    ranks: PercentileOptions
    json: bool = option("print every run in full as JSON")
