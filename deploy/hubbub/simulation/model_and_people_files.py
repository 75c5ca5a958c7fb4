"""Reads a model from its table `[models.NAME]` in a TOML file, and people from a CSV file."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import Model
from hubbub.authoring.crowds.crowd_vector_epsilon import (
    CROWD_ROUNDS,
    CROWD_ROUNDS_EACH,
    codes_epsilon,
)
from hubbub.authoring.metrics_toml.model_table import AS_METRICS
from hubbub.catalog import Metric
from hubbub.catalog.models.learning import Learning, class_label, text_label
from hubbub.catalog.models.model_features import Feature, features_of
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.field import arguments_of, fields_of
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.privacy.exact_accountant import ExactAccountant
from hubbub.programs.text_files import csv_rows, parse_toml

_FIELDS: Final = {
    **{field.name: field for field in fields_of(Metric) if field.name in AS_METRICS},
    **{field.name: field for field in fields_of(Learning)},
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A model as its table describes it, which may lack what a file or a crowd determines."""

    name: str
    table: Mapping[str, Any]

    def of(self, head: Sequence[str]) -> tuple[Model, tuple[Feature, ...]]:
        """The model for a file with these columns, and its features: all but the label."""
        table, crowded = self.table, bool(self.crowd)
        ends = table.get("columns", (0.0, 1.0))
        columns = {name: ends for name in head if name != self.label}
        features = table.get("features") or features_of(columns)
        model = Model(
            name=self.name,
            kind=table["kind"],
            epsilon=table.get("epsilon", MIN_EPSILON),
            columns=tuple(column for feature in features for column in feature.columns),
            range=table.get("range", (0.0, 1.0)),
            rounds=table.get("rounds", CROWD_ROUNDS if crowded else 0),
            penalty=table.get("penalty", 0.01 if table["kind"] == "ridge" else 0.0),
            held_out=table.get("held_out", 0.0),
            classes=table.get("classes", ()),
            rounds_each=table.get("rounds_each", CROWD_ROUNDS_EACH) if crowded else 0,
        )
        if "epsilon" not in table:  # the largest with which all of a person's keep the promise
            promise = replace(arguments_of(Metric, table)["crowd"], epochs=model.rounds_each)
            judged = model.held_out > 0
            largest = codes_epsilon(promise, model.dimensions, ExactAccountant(), judged=judged)
            model = replace(model, epsilon=largest)
        return model, features

    @property
    def label(self) -> str:
        """The name of the label's column."""
        return str(self.table["label"])

    @property
    def crowd(self) -> int:
        """The smallest number of people in a round that leaves the shuffler; 0 for any number."""
        return int(self.table["crowd"]) if "central_epsilon" in self.table else 0


@dataclass(frozen=True, slots=True)
class People:
    """Columns scaled to [0, 1], shape (people, columns); labels in [0, 1]; how many were clipped.

    The labels of softmax are indexes of classes.
    """

    columns: Floats
    labels: Floats
    clipped: int


def read_model(path: Path, text: str | None, name: str) -> Planned | None:
    """Reads the model of this name; None if the catalog has none, or no readable text.

    Raises BadParameter if a field is missing, unknown or invalid.
    """
    models: Any = {}
    with suppress(ValueError):  # the catalog's reader, next, reports its problems
        models = parse_toml(text or "").get("models")
    if not isinstance(models, dict) or name not in models:
        return None
    table = models[name]
    if not isinstance(table, dict):
        raise BadParameter(f"{path}: models.{name} is not a table; write [models.{name}]")
    for key in table.keys() - {*_FIELDS, "columns"}:
        raise BadParameter(
            f'{path}: models.{name} has no field "{key}"; it takes {", ".join(_FIELDS)}'
        )
    for key in ("kind", "crowd" if "central_epsilon" in table else "epsilon", "label"):
        if key not in table:
            raise BadParameter(f"{path}: models.{name} needs {key}")
    settings = {}
    for key, value in table.items():
        field = _FIELDS["range" if key == "columns" else key]  # the range of every column
        if problem := field.problem(value):
            raise BadParameter(f"{path}: {key} of models.{name} {problem}")
        settings[key] = field.entry.kind.read(value)
    return Planned(name, settings)


def read_people(path: Path, planned: Planned, option: str = "--values") -> tuple[Model, People]:
    """Reads people from a CSV file with a header, one per line; `option` named the file.

    Raises BadParameter, which names the line, never its content, if a column is missing, or a field
    is no number or not a listed value.
    """
    rows = csv_rows(path, option)
    head = next(rows, (1, ()))[1]
    model, features = planned.of(head)
    names = [feature.name for feature in features]
    if planned.label in names:
        raise BadParameter(
            f'{path}: column "{planned.label}" is the label and a feature: leave it out of features'
        )
    for name in (*names, planned.label):
        if name not in head:
            raise BadParameter(
                f'{path} has no column "{name}"; its first line has {len(head)} others: no header?'
            )
    people = [_person(f"{path}, line {n}", head, row, features, planned) for n, row in rows if row]
    if not people:
        raise BadParameter(f"{path} has no people: write a line for each, after the header")
    columns = np.array([values for values, _, _ in people])
    labels = np.array([label for _, label, _ in people])
    clipped = sum(is_clipped for _, _, is_clipped in people)
    if model.kind == "logistic":
        if not np.isin(labels, (0.0, 1.0)).all():
            raise BadParameter(
                f'{path}: column "{planned.label}" is not 0 or 1 in every line; name the text that '
                'counts as 1 by positive = "..." in the model\'s table'
            )
    elif model.kind != "softmax":
        low, high = model.range
        clamped = np.clip(labels, low, high)
        clipped += int((clamped != labels).sum())
        labels = (clamped - low) / (high - low)
    return model, People(columns, labels, clipped)


def _person(
    location: str,
    head: Sequence[str],
    row: Sequence[str],
    features: Sequence[Feature],
    planned: Planned,
) -> tuple[list[float], float, int]:
    """A person's columns in [0, 1], label, and number of clipped values."""
    if len(row) != len(head):
        raise BadParameter(f"{location}: {len(row)} fields, {len(head)} expected")
    texts = dict(zip(head, map(str.strip, row), strict=True))
    columns, clipped = list[float](), 0
    for feature in features:
        place, text = f'{location}, column "{feature.name}"', texts[feature.name]
        try:
            codes, is_clipped = feature.coded(text if feature.is_listed else float(text))
        except ValueOutOfDomain as error:
            problem = str(error).removeprefix(f'feature "{feature.name}": ').partition(": ")[0]
            raise BadParameter(f"{place}: {problem}") from error
        except ValueError as error:
            raise BadParameter(f"{place}: the value is not a finite number") from error
        columns += codes
        clipped += is_clipped
    label = _label(f'{location}, column "{planned.label}"', texts[planned.label], planned)
    return columns, label, clipped


def _label(location: str, text: str, planned: Planned) -> float:
    if not text:
        raise BadParameter(f"{location}: the value is missing")
    try:
        if planned.table["kind"] == "softmax":
            return class_label(text, planned.table["classes"])
        if "positive" in planned.table:
            return text_label(text, planned.table["positive"], planned.table.get("negative", ""))
        value = float(text)
    except ValueOutOfDomain as error:
        raise BadParameter(f"{location}: {error}") from error
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadParameter(f"{location}: the value is not a finite number")
    return value
