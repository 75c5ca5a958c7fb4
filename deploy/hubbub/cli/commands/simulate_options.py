"""The options of `hubbub simulate`."""

from pathlib import Path
from typing import Final

from hubbub.cli.terminal.query_options import read_confidence
from hubbub.fields.rules import Interval
from hubbub.programs.options import argument, option, options

RUNS: Final = 200
"""How often a metric is rehearsed, unless asked otherwise."""


@options
class SimulateOptions:
    """Options of `hubbub simulate`."""

    metric: str = argument("its name in the catalog, or that of a model")
    catalog: Path = option("the catalog (%(default)s)", default=Path("metrics.toml"))
    values: Path = option(
        "CSV, plain or .gz: a person's value a line, or value,count; of a set its values with "
        "| between them; of parts, of public fields, and of a vector's coordinates, a column each "
        "under a head of their names; with a column day beside them, and person or count, days; of "
        "a model, a column a feature and one the label",
        metavar="FILE",
    )
    test: Path | None = option(
        "of a model: people held out, to judge it by", default=None, metavar="FILE"
    )
    reports: int | None = option(
        "draw N people as from a population like the file",
        default=None,
        metavar="N",
        within=Interval(1, 10**12),
    )
    epochs: int = option(
        "in which the same people report (%(default)s)", default=1, within=Interval(1, 1000)
    )
    runs: int | None = option(
        f"how often it is repeated ({RUNS}; a model 5 times)",
        default=None,
        within=Interval(1, 100_000),
    )
    seed: int | None = option(
        "of the coins; without it the system's", default=None, within=Interval(0)
    )
    candidates: Path | None = option(
        "file of strings to look for beside those of --values", default=None
    )
    confidence: float = option("of the intervals (%(default)s)", default=0.95, read=read_confidence)
    json: bool = option("every run, whole", default=False)
