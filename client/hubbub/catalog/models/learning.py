"""Learning: the model that a metric's reports train, and the epochs of its rounds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any, Final

from hubbub.catalog.epochs_and_periods import MINUTE, epoch_at
from hubbub.catalog.models.model_features import Feature, features_of
from hubbub.catalog.plain_python_value import as_python
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import check, setting, settings
from hubbub.fields.frozen import frozen
from hubbub.mechanisms import BitSource, gradient, is_number

# Epochs between the begins of two rounds, so that all reports of a round arrive before the next.
# In development reports arrive at once.
_APART: Final = 2

# Share of devices, in 1,000, that report the centre of columns; decision 0219.
_CENTRE: Final = 100
_OF: Final = 1000
_MAX_ROUNDS: Final = 64


@frozen()
class Example:
    """One person's example: columns and label in [0, 1], and how many values were clipped.

    For softmax the label is the place of its class.
    """

    columns: tuple[float, ...]
    label: float
    clipped: int = 0


_WORDS: Final = "a table that gives each feature its range, the ends of its bands, or its values"


def _problem_with_features(value: Any) -> str:
    if isinstance(value, tuple) and all(isinstance(feature, Feature) for feature in value):
        return "" if value else f"must be {_WORDS}"
    if not isinstance(value, dict) or not value:
        return f"must be {_WORDS}"
    try:
        features_of(value)
    except BadParameter as error:
        return str(error)
    return ""


def _is_begin(value: Any) -> bool:
    return isinstance(value, date) and (not isinstance(value, datetime) or value.tzinfo is not None)


def _load_begin(text: str) -> date:
    moment = datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
    if moment.isoformat() != text:
        raise ValueError("a moment is written as 2099-12-31T08:00:00+00:00")
    return moment


_CLASS_WORDS: Final = "a list of texts, none empty and none twice"


def _problem_with_classes(value: Any) -> str:
    texts = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    return kinds.VALUES.problem(value) if texts else f"must be {_CLASS_WORDS}"


_PAIR: Final = kinds.simple(
    "two numbers, the smaller first",
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) == 2  # noqa: PLR2004 a pair
        and all(map(is_number, value))
        and value[0] < value[1]
        and is_number(value[1] - value[0])
    ),
    {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    read=lambda pair: (float(pair[0]), float(pair[1])),
    dump=list,
    load=lambda pair: (float(pair[0]), float(pair[1])),
)


def text_label(label: str, positive: str, negative: str) -> float:
    """1 for `positive`, 0 for `negative` or, if that is "", for every other text.

    Raises ValueOutOfDomain if it is neither, or positive but for case and blanks; the message never
    shows it.
    """
    if label == positive:
        return 1.0
    if negative:
        is_unclear = label != negative
    else:
        is_unclear = label.strip().casefold() == positive.strip().casefold()
    if is_unclear:
        other = f'"{negative}"' if negative else "every other text"
        raise ValueOutOfDomain(
            "label is neither positive nor negative as written: "
            f'"{positive}" is 1, and {other} is 0'
        )
    return 0.0


def class_label(label: Any, classes: Sequence[str]) -> float:
    """The index of a label's class. Raises ValueOutOfDomain for another; never shows it."""
    if not (isinstance(label, str) and label in classes):
        listing = ", ".join(f'"{group_class}"' for group_class in classes)
        raise ValueOutOfDomain(f"the label is not one of the classes as written: {listing}")
    return float(classes.index(label))


@settings
class Learning:
    """A model's definition: what is learned, by whom, and when. Raises BadParameter."""

    kind: gradient.ModelKind = setting(
        kinds.word_kind(lambda: gradient.KINDS),
        "Kind of the model: `logistic` for a probability, `softmax` for a probability of "
        "each of its `classes`, `linear`, or `ridge` with its `penalty`.",
        '"logistic"',
    )
    features: tuple[Feature, ...] = setting(
        kinds.Kind(
            words=lambda: _WORDS,
            problem=_problem_with_features,
            schema=lambda: {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "array", "minItems": 2},
            },
            read=features_of,
            dump=lambda features: [[feature.name, list(feature.says)] for feature in features],
            load=lambda pairs: tuple(map(Feature.load, pairs)),
        ),
        "The features of a person: two numbers are a range, to which values are clipped; "
        "more numbers are the ends of bands; texts are the values of a list.",
        '{ age = [17, 90], plan = ["free", "paid"] }',
        write="write features = { age = [17, 90] }",
    )
    begins: date = setting(
        kinds.simple(
            "a date, or a moment with its offset, as 2026-12-01T08:00:00Z",
            _is_begin,
            {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}"},
            dump=lambda value: value.isoformat(),
            load=_load_begin,
        ),
        "Day or moment (UTC) whose epoch has the first round; further rounds follow in every "
        "second epoch.",
        "2026-12-01",
        write="write begins = 2026-12-01",
    )
    label: str = setting(
        kinds.text("names the label"),
        "Name of the label in files for rehearsals.",
        '"left"',
        default="label",
    )
    positive: str = setting(
        kinds.text("is a label"),
        "Label that counts as 1; without `negative` every other text counts as 0.",
        '"yes"',
        default="",
    )
    negative: str = setting(
        kinds.text("is a label"),
        "Label that counts as 0; other texts are then refused.",
        '"no"',
        default="",
    )
    classes: tuple[str, ...] = setting(
        replace(
            kinds.VALUES,
            words=lambda: _CLASS_WORDS,
            problem=_problem_with_classes,
            schema=lambda: kinds.VALUES.schema()["anyOf"][0],
        ),
        f"Labels of `softmax`: {gradient.MIN_CLASSES} to {gradient.MAX_CLASSES} texts.",
        '["monthly", "yearly", "none"]',
        default=(),
    )
    range: tuple[float, float] = setting(
        _PAIR, "Range of a numeric label.", "[0, 100]", default=(0.0, 1.0)
    )
    rounds: int = setting(
        kinds.integer(3, _MAX_ROUNDS),
        "Number of rounds; each person sends a gradient in one of them.",
        "8",
        default=8,
    )
    rounds_each: int = setting(
        kinds.integer(1, _MAX_ROUNDS),
        "In a crowd: number of rounds in which a device takes part, drawn evenly from all "
        "rounds, including the round that measures columns.",
        "4",
        default=0,
    )
    held_out: float = setting(
        kinds.number("a share", 0.01, 0.5),
        "Share of devices that do not train but, in a round after the last one, measure the "
        "model: AUC and calibration.",
        "0.1",
        default=0.0,
    )
    penalty: float = setting(
        kinds.number("a number", 0.0, 1e6),
        "Cost of squared coefficients, for `ridge`.",
        "0.01",
        default=0.0,
    )

    def __post_init__(self) -> None:
        check(self)
        if (self.kind == "ridge") != (self.penalty > 0):
            raise BadParameter('"penalty" is for ridge only, which needs it: write penalty = 0.01')
        gradient.check_size(len(self.columns), len(self.classes), self.kind)
        gradient.check_classes(self.classes)
        if self.kind == "softmax" and (self.positive or self.negative):
            raise BadParameter('"positive" and "negative" are for logistic; softmax has "classes"')
        if self.kind in {"logistic", "softmax"} and self.range != (0.0, 1.0):
            raise BadParameter(f'"range" is for a numeric label, and {self.kind} has none')
        if self.rounds_each > self.rounds + 1:
            raise BadParameter(
                f"rounds_each {self.rounds_each} is above {self.rounds + 1}, the number of "
                "rounds including round 0: lower rounds_each, or raise rounds"
            )
        if self.negative and self.positive in ("", self.negative):
            raise BadParameter(
                '"negative" must differ from "positive": write both, with different texts'
            )

    @property
    def reports(self) -> int:
        """The largest number of rounds of a device, and so of its reports for life."""
        return self.rounds_each or 1

    @property
    def columns(self) -> tuple[tuple[str, float, float], ...]:
        """The name of each column of all features, and its range in its own unit."""
        return tuple(column for feature in self.features for column in feature.columns)

    @property
    def dimensions(self) -> int:
        """The number of coordinates of a gradient: columns and intercept, for each contrast."""
        return gradient.dimensions_of(len(self.columns), len(self.classes))

    @property
    def last_round(self) -> int:
        """The number of the last round, which is that of the judges if there are some."""
        return self.rounds + (self.held_out > 0)

    def first_epoch(self, length: str, now: float) -> int:
        """The epoch of round 0, of the columns' location; in development the last one begun."""
        first = self._begin_epoch(length)
        if length != MINUTE:
            return first
        cycles = max(0, epoch_at(now, length) - first) // (self.last_round + 1)
        return first + cycles * (self.last_round + 1)

    def epoch_of(self, number: int, length: str, first: int) -> int:
        """The epoch of a round, if round 0 is in the epoch `first`."""
        return first + (1 if length == MINUTE else _APART) * number

    def round_in(self, epoch: int, length: str) -> int | None:
        """The round in an epoch; None for none."""
        passed = epoch - self._begin_epoch(length)
        if length == MINUTE:
            return passed % (self.last_round + 1) if passed >= 0 else None
        number, offset = divmod(passed, _APART)
        return None if offset or not 0 <= number <= self.last_round else number

    def turns(self, coins: BitSource) -> frozenset[int]:
        """The rounds of a device, drawn by its own coins.

        In a crowd these are `rounds_each` of all, equally likely. Otherwise it is one: 0 for a
        tenth of devices, else any other, equally likely. Judges have the last one alone.
        """
        place = coins.below(_OF)
        if _CENTRE <= place < _CENTRE + round(self.held_out * _OF):
            return frozenset({self.last_round})
        if not self.rounds_each:
            return frozenset({0 if place < _CENTRE else 1 + coins.below(self.rounds)})
        free_rounds = list(range(self.rounds + 1))
        return frozenset(
            free_rounds.pop(coins.below(len(free_rounds))) for _ in range(self.rounds_each)
        )

    def example(self, features: Any, label: Any) -> Example:
        """A person's example; features by name, or all in order. Raises ValueOutOfDomain."""
        names = [feature.name for feature in self.features]
        if isinstance(features, Mapping):
            missing = [name for name in names if name not in features]
            # PRIVACY: a person may have written an unknown name, so only their number is shown.
            unknown = len(features.keys() - set(names))
            if missing or unknown:
                raise ValueOutOfDomain(
                    f"features are {', '.join(names)}; missing: {', '.join(missing) or 'none'}; "
                    f"unknown: {unknown:,}"
                )
            values = [features[name] for name in names]
        elif isinstance(features, Sequence) and not isinstance(features, str | bytes):
            if len(features) != len(names):
                raise ValueOutOfDomain(
                    f"{len(features)} features were passed, but the model has {len(names)}: "
                    f"{', '.join(names)}"
                )
            values = list(features)
        else:
            raise ValueOutOfDomain("features must be a mapping by name or a sequence")
        codes = [feature.coded(value) for feature, value in zip(self.features, values, strict=True)]
        place, is_clipped = self._label(label)
        columns = tuple(x for feature_columns, _ in codes for x in feature_columns)
        return Example(columns, place, is_clipped + sum(clipped for _, clipped in codes))

    def _label(self, label: Any) -> tuple[float, int]:
        """A label in [0, 1], or the index of its class, and whether it was clipped."""
        label = as_python(label)
        if self.kind == "softmax":
            return class_label(label, self.classes), 0
        if self.kind == "logistic":
            if self.positive and isinstance(label, str):
                return text_label(label, self.positive, self.negative), 0
            if isinstance(label, bool | int | float) and label in (0, 1):
                return float(label), 0
            text = f', nor "{self.positive}" or another text' if self.positive else ""
            if self.negative:
                text = f', nor "{self.positive}" or "{self.negative}"'
            raise ValueOutOfDomain(f"label is neither 0 nor 1{text}")
        if not is_number(label):
            raise ValueOutOfDomain("label is not a finite number")
        low, high = self.range
        clamped = min(max(float(label), low), high)
        return (clamped - low) / (high - low), int(clamped != label)

    def _begin_epoch(self, length: str) -> int:
        begins = self.begins
        moment = (
            begins if isinstance(begins, datetime) else datetime.combine(begins, time(), tzinfo=UTC)
        )
        return epoch_at(math.floor(moment.timestamp()), length)
