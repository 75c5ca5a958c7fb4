"""Reads a model from its table `[models.NAME]` in a TOML file, and people from a CSV file."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.models import Feature, Model
from hubbub.authoring.crowds.crowd_codes import (
    CROWD_ROUNDS,
    CROWD_ROUNDS_EACH,
    codes_epsilon,
    model_promise,
)
from hubbub.authoring.metrics_toml.model_table import AS_METRICS
from hubbub.catalog import Metric
from hubbub.catalog.crowds.central import CENTRAL_FIELDS
from hubbub.catalog.models.learning import class_label, text_label
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.field import fields_of
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.privacy.crowd import ExactAccountant
from hubbub.programs.text_files import csv_rows, parse_toml, read_text

_KEYS: Final = (
    "kind",
    "epsilon",
    "label",
    "positive",
    "negative",
    "range",
    "features",
    "classes",
    "rounds",
    "rounds_each",
    "penalty",
    "held_out",
)
_PAIR: Final = 2

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A model as its table describes it. `features` is None for every column except the label.

    `positive` is the text of a label that counts as 1, None if labels are numbers; `negative` the
    text that counts as 0, "" for any other text.
    """

    name: str
    table: Mapping[str, Any]
    label: str
    positive: str | None
    negative: str
    features: Mapping[str, Sequence[Any]] | None

    def of(self, head: Sequence[str]) -> tuple[Model, dict[str, Sequence[Any]]]:
        """The model for a file with these columns, and the range or values of each feature."""
        every = self.features
        if every is None:
            every = {
                name: self.table.get("columns", (0.0, 1.0)) for name in head if name != self.label
            }
        columns = [feature for name, says in every.items() for feature in _columns(name, says)]
        low, high = _pair("range", self.table.get("range", (0.0, 1.0)))
        crowded = "central_epsilon" in self.table
        model = Model(
            name=self.name,
            kind=self.table["kind"],
            epsilon=_number("epsilon", self.table.get("epsilon", MIN_EPSILON if crowded else None)),
            features=tuple(columns),
            low=low,
            high=high,
            rounds=_whole("rounds", self.table.get("rounds", CROWD_ROUNDS if crowded else 0)),
            penalty=_number(
                "penalty", self.table.get("penalty", 0.01 if self.table["kind"] == "ridge" else 0)
            ),
            held_out=_number("held_out", self.table.get("held_out", 0)),
            classes=_classes(self.table.get("classes", [])),
            rounds_each=_whole("rounds_each", self.table.get("rounds_each", CROWD_ROUNDS_EACH))
            if crowded
            else 0,
        )
        if crowded and "epsilon" not in self.table:
            model = replace(model, epsilon=self._local_epsilon(model))
        return model, dict(every)

    @property
    def crowd(self) -> int:
        """The smallest number of people in a round that leaves the shuffler; 0 for any number."""
        return _whole("crowd", self.table["crowd"]) if "central_epsilon" in self.table else 0

    def _local_epsilon(self, model: Model) -> float:
        """The largest epsilon of a report with which all of a person's keep the central promise."""
        terms = {
            field.name: field.default for field in fields_of(Metric) if field.name in CENTRAL_FIELDS
        }
        for name in terms.keys() & self.table.keys():
            terms[name] = _number(name, self.table[name])
        promise = model_promise(terms | {"crowd": self.crowd}, model.rounds_each)
        judged = model.held_out > 0
        return codes_epsilon(promise, model.dimensions, ExactAccountant(), judged=judged)


@dataclass(frozen=True, slots=True)
class People:
    """Columns scaled to [0, 1], shape (people, columns); labels in [0, 1]; how many were clipped.

    The labels of softmax are indexes of classes.
    """

    columns: Floats
    labels: Floats
    clipped: int


def read_model(path: Path, name: str) -> Planned | None:
    """Reads the model of this name; None if the catalog has none, or cannot be read.

    Raises:
        BadParameter: a field is missing, unknown or invalid.
    """
    models = _models(path)
    if name not in models:
        return None
    table = models[name]
    if not isinstance(table, dict):
        raise BadParameter(f"{path}: models.{name} is not a table; write [models.{name}]")
    names = {*_KEYS, *AS_METRICS, "columns", "begins"}
    for key in table.keys() - names:
        raise BadParameter(f'{path}: models.{name} has no "{key}"; it takes {", ".join(_KEYS)}')
    crowded = "central_epsilon" in table
    for key in ("kind", "crowd" if crowded else "epsilon", "label"):
        if key not in table:
            raise BadParameter(f"{path}: models.{name} needs {key}")
    features = table.get("features")
    if not (features is None or (isinstance(features, dict) and features)):
        raise BadParameter(
            f"{path}: features of models.{name} is not a table; for example "
            'features = { age = [17, 90], work = ["private", "state"] }'
        )
    positive = table.get("positive")
    return Planned(
        name=name,
        table=table,
        label=str(table["label"]),
        positive=None if positive is None else str(positive),
        negative=str(table.get("negative", "")),
        features=features,
    )


def read_people(path: Path, planned: Planned, option: str = "--values") -> tuple[Model, People]:
    """Reads people from a CSV file with a header, one per line; `option` named the file.

    Raises:
        BadParameter: a column is missing, or a field is no number or not a listed value; the
            message names the line, never its content.
    """
    rows = csv_rows(path, option)
    head = next(rows, (1, ()))[1]
    model, features = planned.of(head)
    if planned.label in features:
        raise BadParameter(
            f'{path}: column "{planned.label}" is the label and a feature: leave it out of features'
        )
    for name in (*features, planned.label):
        if name not in head:
            raise BadParameter(
                f'{path} has no column "{name}"; its first line has {len(head)} others, if it is a '
                "header"
            )
    people = list(_rows(path, rows, head, features, planned))
    if not people:
        raise BadParameter(f"{path} has no people: write a line for each, after the header")
    whole = np.array(people, dtype=np.float64)
    columns, clipped = model.scaled(whole[:, :-1])
    labels = whole[:, -1]
    if model.kind == "logistic":
        if not np.isin(labels, (0.0, 1.0)).all():
            raise BadParameter(
                f'{path}: column "{planned.label}" is not 0 or 1 in every line; name the text that '
                'counts as 1 by positive = "..." in the model\'s table'
            )
    elif model.kind != "softmax":
        inside = np.clip(labels, model.low, model.high)
        clipped += int((inside != labels).sum())
        labels = (inside - model.low) / (model.high - model.low)
    return model, People(columns, labels, clipped)


def _rows(
    path: Path,
    rows: Iterator[tuple[int, Sequence[str]]],
    head: Sequence[str],
    features: Mapping[str, Sequence[Any]],
    planned: Planned,
) -> Iterator[list[float]]:
    """Yields each person's columns, followed by the label."""
    places = {name: head.index(name) for name in (*features, planned.label)}
    for number, row in rows:
        if not row:
            continue
        if len(row) != len(head):
            raise BadParameter(f"{path}, line {number}: {len(row)} fields, {len(head)} expected")
        numbers: list[float] = []
        for name, says in features.items():
            where = f'{path}, line {number}, column "{name}"'
            numbers += _coded(where, row[places[name]].strip(), says)
        text = row[places[planned.label]].strip()
        where = f'{path}, line {number}, column "{planned.label}"'
        if not text:
            raise BadParameter(f"{where}: the value is missing")
        try:
            numbers.append(_label(where, text, planned))
        except ValueOutOfDomain as error:
            raise BadParameter(f"{where}: {error}") from error
        yield numbers


def _label(where: str, text: str, planned: Planned) -> float:
    if planned.table["kind"] == "softmax":
        return class_label(text, planned.table["classes"])
    if planned.positive is None:
        return _read(where, text)
    return text_label(text, planned.positive, planned.negative)


def _coded(where: str, text: str, says: Sequence[Any]) -> list[float]:
    """Encodes a value as columns: the number itself, or 0s and 1s for listed values or bands."""
    if isinstance(says[0], str):
        if text not in says:
            raise BadParameter(f"{where}: the value is not one of the {len(says)} listed values")
        return [float(text == say) for say in says]
    value = _read(where, text)
    if len(says) == _PAIR:
        return [value]
    band = int(np.clip(np.searchsorted(says, value, side="right") - 1, 0, len(says) - 2))
    return [float(band == place) for place in range(len(says) - 1)]


def _columns(name: str, says: Any) -> list[Feature]:
    if isinstance(says, list) and len(says) > 1 and all(isinstance(say, str) for say in says):
        return [Feature(f"{name}={say}") for say in says]
    if not (isinstance(says, list | tuple) and len(says) >= _PAIR and all(map(_is_number, says))):
        raise BadParameter(
            f'feature "{name}": write its range [low, high], the ends of its bands, or its values '
            "as texts"
        )
    if len(says) == _PAIR:
        return [Feature(name, *says)]
    if list(says) != sorted(set(says)):
        raise BadParameter(f'feature "{name}": the ends of its bands do not ascend')
    return [Feature(f"{name} in [{a:g}, {b:g})") for a, b in pairwise(says)]


def _classes(value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise BadParameter("classes of a model is a list of texts")
    return tuple(value)


def _pair(name: str, pair: Any) -> tuple[float, float]:
    if not (isinstance(pair, list | tuple) and len(pair) == _PAIR and all(map(_is_number, pair))):
        raise BadParameter(f"{name} of a model is two numbers: [low, high]")
    return float(pair[0]), float(pair[1])


def _number(name: str, value: Any) -> float:
    if not _is_number(value):
        raise BadParameter(f"{name} of a model is not a number")
    return float(value)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadParameter(f"{name} of a model is not a whole number")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadParameter(f"{where}: the value is not a finite number")
    return value


def _models(path: Path) -> Mapping[str, Any]:
    try:
        toml = parse_toml(read_text(path)).get("models", {})
    except ValueError:
        return {}  # reading the catalog's metrics, next, reports its problems
    return toml if isinstance(toml, dict) else {}
