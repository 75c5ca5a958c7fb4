"""Parts in a crowd: the mechanisms to compare, and the errors of every table of two and three."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod, sqrt
from typing import Any

from hubbub.authoring.crowds.crowd_geometry import cell_variance, planned_geometry
from hubbub.authoring.crowds.crowd_table import NO_DUMMIES
from hubbub.catalog import CentralPromise
from hubbub.catalog.crowds.central_fields import CROWD_PARTS
from hubbub.cli.terminal.output import listing
from hubbub.mechanisms import build
from hubbub.mechanisms.parts import tables_of
from hubbub.privacy.crowd import ExactAccountant


@dataclass(frozen=True, slots=True, kw_only=True)
class TableErrors:
    """Standard errors, in reports, of a rare cell and of a cell of one in ten.

    Args:
        table: the numbers of values of its parts.
        alone_rare, alone_tenth: if reports contain as many parts as the table.
        whole_rare, whole_tenth: if they contain all parts, with noise dummies.
    """

    table: tuple[int, ...]
    cells: int
    alone_rare: float
    alone_tenth: float
    whole_rare: float
    whole_tenth: float


@lru_cache(maxsize=1)
def crowd_mechanisms_of(promise: CentralPromise, sizes: tuple[int, ...]) -> Mapping[int, Any]:
    """By number of parts together: the mechanism that keeps the promise.

    All parts together only with the promise's noise dummies; the others have none.
    """
    parts = {ways: replace(promise, **NO_DUMMIES) for ways in range(2, min(len(sizes), 3) + 1)}
    if promise.noise:
        parts[len(sizes)] = promise
    mechanisms = {}
    for ways, own in parts.items():
        shape = {"sizes": sizes, "ways": ways}
        planned = planned_geometry(CROWD_PARTS, shape, {}, own, ExactAccountant())
        mechanisms[ways] = build(CROWD_PARTS, epsilon=planned.epsilon, **shape)
    return mechanisms


def errors_of_tables(promise: CentralPromise, mechanisms: Mapping[int, Any]) -> list[TableErrors]:
    """The errors of every table of two or three parts, but not of all; empty without dummies."""
    sizes, rows = mechanisms[2].sizes, []
    if not promise.noise:
        return []
    for ways in range(2, min(len(sizes), 4)):
        for parts in tables_of(len(sizes), ways):
            alone_rare, alone_tenth, whole_rare, whole_tenth = (
                sqrt(cell_variance(mechanism, parts, share, promise.crowd, drawn))
                for mechanism, drawn in (
                    (mechanisms[ways], 0.0),
                    (mechanisms[len(sizes)], promise.noise.variance),
                )
                for share in (0.0, 0.1)
            )
            table = tuple(sizes[part] for part in parts)
            rows.append(
                TableErrors(
                    table=table,
                    cells=prod(table),
                    alone_rare=alone_rare,
                    alone_tenth=alone_tenth,
                    whole_rare=whole_rare,
                    whole_tenth=whole_tenth,
                )
            )
    return rows


def show_tables(rows: Sequence[TableErrors]) -> None:
    """Prints the errors of every table."""
    listing(
        "standard errors of each table's cells, in reports: reports of as many parts as the table, "
        "and reports of all parts with noise dummies",
        rows,
        {
            "parts of": lambda row: " x ".join(map(str, row.table)),
            "cells": "{cells:,}",
            "rare, as many": "{alone_rare:,.4g}",
            "rare, all": "{whole_rare:,.4g}",
            "of one in ten, as many": "{alone_tenth:,.4g}",
            "of one in ten, all": "{whole_tenth:,.4g}",
        },
    )
