"""Reads a catalog for a command."""

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from hubbub.authoring import Catalog, read_with_promises
from hubbub.bundles import read_bundle
from hubbub.catalog import Metric
from hubbub.cli.terminal.output import announced_if_long
from hubbub.errors import UnknownMetric
from hubbub.errors.message_words import did_you_mean, visible
from hubbub.mechanisms.vector_codes import POOL
from hubbub.programs.option_parsing import argument, option, options, read_existing
from hubbub.signing.metric_changes import continued_metrics, refuse_changes

_CROWD: Final = b"central_epsilon"


def read_aloud(path: Path, text: str | None = None) -> Catalog:
    """Reads a catalog; says so on standard error if its crowds take over two seconds.

    `text` is read in place of what the file has.
    """
    with announced_if_long(lambda: _long_reading_text(path)):
        return read_with_promises(path, text)


@options
class LastBundle:
    """Which mechanisms `auto` keeps, since devices have them already."""

    previous: Path = option(
        'the last bundle; mechanism = "auto" keeps its choices (%(default)s, if there is one)',
        default=Path("app.hubbub"),
        read=read_existing,
    )

    def read(self, path: Path, text: str | None = None) -> Catalog:
        """The catalog as it would be signed now; says on standard error what is kept."""
        catalog = read_aloud(path, text)
        metrics = self.continued(catalog)
        for sentence in kept_mechanisms(catalog, metrics.values()):
            print(visible(sentence), file=sys.stderr)  # noqa: T201 beside the answer
        return replace(catalog, metrics=metrics)

    def continued(self, catalog: Catalog, *, refuse: bool = False) -> dict[str, Metric]:
        """The metrics of the catalog, as continued from the last bundle.

        With `refuse`, raises as `refuse_changes` does if they may not follow that bundle.
        """
        if not self.previous.exists():
            return {**catalog.metrics}
        bundle = read_bundle(self.previous)
        metrics = continued_metrics(catalog.metrics, bundle)
        if refuse:
            refuse_changes(metrics, bundle)
        return metrics


@options
class CatalogOptions:
    """Options of commands about a whole catalog."""

    catalog: Path = argument("the catalog (%(default)s)", default=Path("metrics.toml"))
    last: LastBundle

    def read(self) -> Catalog:
        """The catalog as `LastBundle.read` has it."""
        return self.last.read(self.catalog)


def kept_mechanisms(catalog: Catalog, metrics: Iterable[Metric]) -> Iterator[str]:
    """Yields a sentence for each metric whose mechanism is that of the last bundle."""
    for metric in metrics:
        chosen_text, signed_text = (
            ", ".join(
                [m.mechanism, *(f"{n} = {m.parameters[n]}" for n in POOL if n in m.parameters)]
            )
            for m in (catalog.metrics[metric.name], metric)
        )
        if chosen_text != signed_text:
            yield (
                f"{metric.name}: keeps {signed_text}, as signed before; under a new name "
                f"auto chooses {chosen_text}"
            )


def chosen_metrics(catalog: Catalog, path: Path, names: Collection[str]) -> list[Metric]:
    """The metrics with these names, or all of the catalog.

    Raises UnknownMetric if the catalog, which is in the file `path`, has no such metric.
    """
    for name in names:
        if name not in catalog.metrics:
            names_here = ", ".join(sorted(catalog.metrics))
            raise UnknownMetric(
                f'metric "{name[:60]}" is not in {path}; it has {names_here}'
                f"{did_you_mean(name, catalog.metrics)}"
            )
    return [m for m in catalog.metrics.values() if not names or m.name in names]


def _long_reading_text(path: Path) -> str:
    with suppress(OSError):  # the caller reports it
        if _CROWD in path.read_bytes():
            return (
                "computing what crowds hide; this may take minutes (large ones with dummies "
                '= "auto" take longest)'
            )
    return ""
