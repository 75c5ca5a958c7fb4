"""The subject of `hubbub plan` and `hubbub plan central`: a metric, or a kind of question."""

import argparse
from pathlib import Path
from typing import Any, Final

from hubbub.analysis.families import family_for
from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.cli.terminal.catalog_reading import LastBundle, chosen_metrics
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism
from hubbub.mechanisms.number_range import Range
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.part_and_cell_names import MAX_PARTS
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.programs.command_line import read_whole_number
from hubbub.programs.option_parsing import Group, argument, option, options

CATALOG: Final = Path("metrics.toml")
"""Where a catalog usually is."""


@options
class MetricsOptions:
    """Options of plans about a catalog."""

    catalog: Path = argument("the catalog (%(default)s)", default=CATALOG)
    metrics: tuple[str, ...] = option(
        "metric of the catalog (repeatable; without it all metrics)",
        name="--metric",
        metavar="METRIC",
    )
    last: LastBundle = LastBundle()

    @property
    def is_missing(self) -> bool:
        """Whether no catalog was named, and there is none at the usual path."""
        return self.catalog == CATALOG and not CATALOG.exists()

    def read(self) -> tuple[Catalog, list[Metric]]:
        """The catalog, and its named metrics, or all of them.

        Raises:
            BadParameter: there is no catalog.
            UnknownMetric: the catalog has no metric of such a name.
        """
        if self.is_missing:
            raise BadParameter(
                f"{CATALOG} does not exist here: name a catalog by its path, such as "
                "app/metrics.toml; hubbub catalog new NAME writes one"
            )
        catalog = self.last.read(self.catalog)
        return catalog, chosen_metrics(catalog, self.catalog, self.metrics)


_QUESTION: Final = Group("the question, instead of --metric")
_KINDS: Final = ("values", "strings", "mean", "ranges", "set", "parts", "vector")
_EXAMPLES: Final = {
    "mean": "--mean 0 60",
    "ranges": "--ranges 12 0 60",
    "set": "--set 40 5",
    "parts": "--parts 7 16 14 2",
    "vector": "--vector 16 1",
}
_MAX_VALUES: Final = 1 << 20
_STRINGS: Final = 100


def _read_size(text: str) -> int:
    if "," in text:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!a} has commas; separate the numbers by blanks, as in: --parts 7 16"
        )
    return read_whole_number(text)


@options
class SubjectOptions:
    """The options that describe the question."""

    catalog: Path = argument("catalog that contains --metric (%(default)s)", default=CATALOG)
    metric: str | None = option("metric of the catalog")
    values: int | None = option("one of N listed values", metavar="N", group=_QUESTION)
    strings: int | None = option(
        "any string; the analyst looks for N strings", metavar="N", group=_QUESTION
    )
    mean: tuple[float, float] | None = option(
        "the mean of a number between LOW and HIGH", metavar=("LOW", "HIGH"), group=_QUESTION
    )
    ranges: tuple[float, float, float] | None = option(
        "the distribution of a number over N buckets from LOW to HIGH",
        metavar=("N", "LOW", "HIGH"),
        group=_QUESTION,
    )
    set: tuple[int, int] | None = option(
        "a set of listed values: N values, of which a person reports at most MOST",
        metavar=("N", "MOST"),
        group=_QUESTION,
    )
    parts: tuple[int, ...] | None = option(
        "several answers reported together, with N values each; separate the numbers by blanks",
        several=True,
        parse=_read_size,
        metavar="N",
        group=_QUESTION,
    )
    vector: tuple[float, float] | None = option(
        "the mean of a vector of N numbers with a norm of at most LENGTH",
        metavar=("N", "LENGTH"),
        group=_QUESTION,
    )


def draft_of(subject: SubjectOptions) -> tuple[MetricDraft, Metric | None]:
    """The question, and the metric that it comes from, if any.

    Raises BadParameter if there is no question, or several, or one that no metric can ask.
    """
    figures = {kind: getattr(subject, kind) for kind in _KINDS}
    kinds = [kind for kind in _KINDS if figures[kind] is not None]
    if subject.metric and kinds in ([], ["strings"]):
        _, [metric] = MetricsOptions(catalog=subject.catalog, metrics=(subject.metric,)).read()
        if kinds and metric.randomizer.VALUES != "strings":
            raise BadParameter(f'--strings is only for strings; "{metric.name}" has others')
        permanent = metric.lifetime_loss if metric.memoized else None
        size = subject.strings or len(metric.candidates) or _STRINGS
        return _draft_by(metric.randomizer, size=size, permanent_epsilon=permanent), metric
    if subject.catalog != CATALOG and not subject.metric:
        raise BadParameter(
            f"{subject.catalog}: to plan a metric of this catalog, add --metric NAME; only plan "
            "attack and plan capacity take a catalog alone"
        )
    if len(kinds) > 1:
        raise BadParameter(
            f"--{' and --'.join(kinds)} are {len(kinds)} questions: leave all but one out"
        )
    if subject.metric or not kinds:
        raise BadParameter(
            "describe the question: a --metric of a catalog; or one of --values, --strings, "
            "--mean, --ranges, --set, --parts, --vector; for example: hubbub plan --values 128 "
            "--epsilon 1 --reports 100000, or hubbub plan metrics.toml --metric theme --reports "
            "50000"
        )
    [kind] = kinds
    try:
        return _draft(kind, figures[kind]), None
    except BadParameter as error:
        example = (
            f"; for example: hubbub plan {_EXAMPLES[kind]} --epsilon 1 --reports 1e5"
            if kind in _EXAMPLES
            else ""
        )
        raise BadParameter(f"--{kind}: {error}{example}") from None


def _draft(kind: str, figures: Any) -> MetricDraft:  # noqa: PLR0911 one for each kind
    """The question of one option, with its values."""
    match kind:
        case "values":
            return MetricDraft(kind="values", size=_size(figures, 2))
        case "strings":
            return MetricDraft(kind="strings", size=_size(figures, 1))
        case "mean":
            low, high = figures
            Range(low, high)  # refuses what is no range
            return MetricDraft(kind="mean", size=1, low=low, high=high)
        case "ranges":
            size, low, high = figures
            Range(low, high)
            return MetricDraft(kind="ranges", size=_size(size, 2), low=low, high=high)
        case "set":
            size, max_members = figures
            if max_members > size:
                raise BadParameter(
                    f"{max_members} of {size} values is impossible; the number of values comes "
                    "first: swap the two"
                )
            if not 1 <= max_members <= _size(size, 2):
                raise BadParameter(f"size {max_members} of a set is outside [1, {size}]")
            return MetricDraft(kind="sets", size=size, most=max_members)
        case "parts":
            if not 2 <= len(figures) <= MAX_PARTS or min(figures) < 2:  # noqa: PLR2004 a part has a choice
                raise BadParameter(
                    f"write the number of values of each of 2 to {MAX_PARTS} parts, each at least 2"
                )
            return _draft_by(PairedParts(1.0, figures))
        case _:
            size, length = figures
            return _draft_by(VectorCodes(epsilon=1.0, dimensions=_size(size, 1), max_length=length))


def _size(number: float, minimum: int) -> int:
    if not float(number).is_integer():
        raise BadParameter(f"{number:g} is not a whole number")
    if not minimum <= number <= _MAX_VALUES:  # as many as a bundle may list
        raise BadParameter(f"count {number:,.0f} is outside [{minimum}, {_MAX_VALUES:,}]")
    return int(number)


def _draft_by(mechanism: AnyMechanism, **others: Any) -> MetricDraft:
    """The question of a mechanism; `others` are fields that it does not determine."""
    return MetricDraft(**{**others, **family_for(mechanism).question(mechanism)})
