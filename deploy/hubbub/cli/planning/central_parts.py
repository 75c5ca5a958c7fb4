"""Parts in a crowd: the mechanisms to compare, and the errors of every table of two and three."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.authoring.crowds.crowd_geometry import cell_variance, planned_geometry
from hubbub.authoring.crowds.crowd_table import NO_DUMMIES
from hubbub.catalog import CentralPromise
from hubbub.catalog.crowds.central_fields import CROWD_PARTS
from hubbub.cli.planning.central_rows import Way, count_row, crowd_row
from hubbub.cli.terminal.output import listing
from hubbub.mechanisms import build
from hubbub.mechanisms.even_noise import even_lies
from hubbub.mechanisms.parts import tables_of
from hubbub.privacy.crowd import ExactAccountant, crowd_of_promise

# Of reports of as many parts as the table, and of all parts with noise dummies.
_ERRORS: Final = ("alone_rare", "alone_tenth", "whole_rare", "whole_tenth")


@lru_cache(maxsize=1)
def _crowd_mechanisms(
    promise: CentralPromise, sizes: tuple[int, ...]
) -> Mapping[int, tuple[CentralPromise, Any]]:
    """By number of parts together: the promise, and the mechanism that keeps it.

    All parts together only with the promise's noise dummies; the others have none.
    """
    plain = replace(promise, **NO_DUMMIES)
    promises = dict.fromkeys(range(2, min(len(sizes), 3) + 1), plain)
    if promise.noise:
        promises[len(sizes)] = promise
    mechanisms = {}
    for ways, own in promises.items():
        shape = {"sizes": sizes, "ways": ways}
        planned = planned_geometry(CROWD_PARTS, shape, {}, own, ExactAccountant())
        mechanisms[ways] = own, build(CROWD_PARTS, epsilon=planned.epsilon, **shape)
    return mechanisms


def ways_of_parts(promise: CentralPromise, sizes: tuple[int, ...]) -> list[Way]:
    """Rows of crowds with two, three or all parts per report, and of individual reports with two.

    The errors are those of the first table of two, or of three, or, with all, of all parts.
    """
    rows = []
    for number, (own, mechanism) in _crowd_mechanisms(promise, sizes).items():
        lies = even_lies(mechanism, mechanism.privacy_loss())
        crowd = crowd_of_promise(own, lies.categories, lies.epsilon, lies.groups)
        if own.noise:
            name, errors = f"crowd, all {number} parts", (crowd.stderr(0.0), crowd.stderr(0.1))
        else:
            name, errors = f"crowd, tables of {number}", _cell_errors(mechanism, promise.crowd)
        rows.append(crowd_row(name, crowd, promise.delta, errors))
    alone = build(CROWD_PARTS, epsilon=promise.epsilon, sizes=sizes)
    errors = _cell_errors(alone, promise.crowd)
    return [*rows, count_row("alone, tables of 2", promise.epsilon, promise.epsilon, *errors)]


def _cell_errors(mechanism: Any, reports: int) -> tuple[float, float]:
    """Standard errors of a cell of the first table: of one that nobody holds, of one in ten."""
    examples = [mechanism.with_cell(0, turn) for turn in (0, 1)]
    expected = family_for(mechanism).expected(mechanism, examples, np.array([0.1, 0.9]), reports)
    return reports * float(expected.absent[0]), reports * float(expected.stderrs[0])


def errors_of_tables(promise: CentralPromise, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Standard errors, in reports, of every table of two or three parts, but not of all.

    A row has the table's numbers of values, and its errors of a rare cell and of one in ten, by
    `_ERRORS`. There are no rows without noise dummies.
    """
    if not promise.noise:
        return []
    mechanisms, rows = _crowd_mechanisms(promise, sizes), []
    _, whole = mechanisms[len(sizes)]
    for ways in range(2, min(len(sizes), 4)):
        _, alone = mechanisms[ways]
        for parts in tables_of(len(sizes), ways):
            variances = [
                cell_variance(mechanism, parts, share, promise.crowd, drawn)
                for mechanism, drawn in ((alone, 0.0), (whole, promise.noise.variance))
                for share in (0.0, 0.1)
            ]
            table = tuple(sizes[part] for part in parts)
            errors = dict(zip(_ERRORS, map(sqrt, variances), strict=True))
            rows.append({"table": table, "cells": prod(table), **errors})
    return rows


def show_tables(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints the errors of every table."""
    listing(
        "standard errors of each table's cells, in reports: reports of as many parts as the table, "
        "and reports of all parts with noise dummies",
        rows,
        {
            "parts of": lambda row: " x ".join(map(str, row["table"])),
            "cells": "{cells:,}",
            "rare, as many": "{alone_rare:,.4g}",
            "rare, all": "{whole_rare:,.4g}",
            "of one in ten, as many": "{alone_tenth:,.4g}",
            "of one in ten, all": "{whole_tenth:,.4g}",
        },
    )
