"""Experiments: apps show each device one of some arms, drawn from its secret.

[experiments.new_menu]
arms = { control = 1, new = 1 }
[metrics.save_time]
experiment = "new_menu"

The arm is one of the metric's public fields (breakdown.py), which the SDK fills in instead of the
app. The first arm is what the others are compared with. An arm of weight 0, or one that a notice
stops, ends the experiment: its devices get an arm that goes on, and nobody reports in an arm.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.breakdown import FIELD
from hubbub.errors import BadParameter, UnknownMetric
from hubbub.errors.message_words import did_you_mean
from hubbub.fields.field import check, dumped, entry, setting, settings
from hubbub.fields.kinds import Kind
from hubbub.fields.rules import is_whole

if TYPE_CHECKING:
    from hubbub.mechanisms import BitSource

_ARM: Final = r"[a-z0-9][a-z0-9_-]{0,23}"
_MIN_ARMS, _MAX_ARMS = 2, 10
_MAX_WEIGHT: Final = 10_000
_PURPOSE: Final = b"arm/1|"
"""The version of the draw: another way to draw has another number, so that arms are drawn anew."""


_WORDS: Final = (
    f"a table of {_MIN_ARMS} to {_MAX_ARMS} arms with their weights, whole numbers up to "
    f"{_MAX_WEIGHT:,}, as {{ control = 1, new = 1 }}"
)


def _problem_with_arms(table: Any) -> str:
    if not isinstance(table, Mapping):
        return f"must be {_WORDS}"
    for name in table:
        if not (isinstance(name, str) and re.fullmatch(_ARM, name)):
            return f"names an arm that does not match {_ARM}; rename it"
    if not _MIN_ARMS <= len(table) <= _MAX_ARMS:
        return f"has {len(table)} of {_MIN_ARMS} to {_MAX_ARMS} arms; write {_WORDS}"
    if not all(is_whole(weight) and 0 <= weight <= _MAX_WEIGHT for weight in table.values()):
        return f"has a weight that is not a whole number in [0, {_MAX_WEIGHT:,}]; write {_WORDS}"
    if not sum(table.values()):
        return "sums to 0, so that no device gets an arm; give one arm a weight of 1 at least"
    return ""


@settings
class Experiment:
    """An experiment: its arms with weights, the control first. Raises BadParameter."""

    name: str
    arms: Mapping[str, int] = setting(
        Kind(
            words=lambda: _WORDS,
            problem=_problem_with_arms,
            schema=lambda: {
                "type": "object",
                "minProperties": _MIN_ARMS,
                "maxProperties": _MAX_ARMS,
                "propertyNames": {"pattern": f"^{_ARM}$"},
                "additionalProperties": {"type": "integer", "minimum": 0, "maximum": _MAX_WEIGHT},
            },
            read=dict,
            # Lists, since the order decides which arm is drawn, and which is compared with.
            dump=lambda arms: [[name, weight] for name, weight in arms.items()],
        ),
        "The arms, each with its weight: a device draws one from its secret. The others are "
        "compared with the first. A weight of 0 ends the experiment: nobody gets that arm.",
        "{ control = 1, new = 1 }",
    )

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and re.fullmatch(FIELD, self.name)):
            raise BadParameter(f"the name of an experiment must match {FIELD}; rename it")
        check(self)

    @property
    def control(self) -> str:
        """The arm that others are compared with."""
        return next(iter(self.arms))

    @property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """The arms as the values of a public field, with their patterns."""
        return {arm: (arm,) for arm in self.arms}

    def live_arms(self, stopped: Collection[str]) -> list[str]:
        """The arms with a weight that the notice does not stop; `stopped` has "EXPERIMENT.ARM".

        If it stops them all, which `hubbub notice make` refuses, devices get the first.
        """
        live = [arm for arm, weight in self.arms.items() if weight]
        return [arm for arm in live if f"{self.name}.{arm}" not in stopped] or live[:1]

    def is_over(self, stopped: Collection[str]) -> bool:
        """Whether an arm was ended, so that the arms cannot be compared any more."""
        return len(self.live_arms(stopped)) < len(self.arms)

    def draw_arm(self, coins: "BitSource") -> str:
        """A device's arm; exactly each weight's share of all secrets gets the arm."""
        place = coins.below(sum(self.arms.values()))
        for arm, weight in self.arms.items():
            if place < weight:
                return arm
            place -= weight
        raise AssertionError("the drawn number is not below the sum of the weights")

    @property
    def purpose(self) -> bytes:
        """The purpose of the arm's random numbers: the definition, so another one draws anew."""
        return _PURPOSE + ",".join(f"{arm}={weight}" for arm, weight in self.arms.items()).encode()


def _load_experiment(table: Any) -> Experiment:
    if not (isinstance(table, dict) and table.keys() == {"name", "arms"}):
        raise TypeError("an experiment is not a table")
    pairs = table["arms"]
    arms = dict(pairs)
    if not isinstance(pairs, list) or len(arms) != len(pairs):
        raise ValueError("an experiment has an arm twice")
    return Experiment(name=table["name"], arms=arms)


def _problem(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "must name one experiment: reports of one metric cannot serve two; name one"
    is_name = isinstance(value, str) and re.fullmatch(FIELD, value) is not None
    if is_name or isinstance(value, Experiment):
        return ""
    return f"must match {FIELD}; write the name of one [experiments.NAME] table"


EXPERIMENT: Final = entry(
    Kind(
        words=lambda: "the name of an [experiments.NAME] table",
        problem=_problem,
        schema=lambda: {"type": "string", "pattern": f"^{FIELD}$"},
        dump=lambda experiment: {"name": experiment.name, **dumped(experiment)},
        load=_load_experiment,
    ),
    "The experiment that the metric measures: answers are separate for each arm, which shuffler "
    "and aggregator see.",
    '"new_menu"',
)


def experiments_of(metrics: Mapping[str, Any]) -> dict[str, Experiment]:
    """The experiments in which metrics take part, by name."""
    experiments = [metric.experiment for metric in metrics.values() if metric.experiment]
    return {experiment.name: experiment for experiment in experiments}


def clashes(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields metrics whose experiment conflicts with others', and why."""
    experiments = experiments_of(metrics)
    stops = {f"{name}.{arm}" for name, experiment in experiments.items() for arm in experiment.arms}
    for name, metric in metrics.items():
        experiment = metric.experiment
        if experiment and list(experiment.arms.items()) != list(
            experiments[experiment.name].arms.items()
        ):
            yield name, f'the experiment "{experiment.name}" has other arms in another metric'
        if name in stops:
            yield name, "the metric has the name by which notices stop an arm; rename it"
        taken = metric.breakdown.keys() & experiments.keys() - (
            {experiment.name} if experiment else set()
        )
        if taken:
            yield name, f"breakdown names the experiment {min(taken)}; rename the public field"


def experiment_named(experiments: Mapping[str, Experiment], name: Any) -> Experiment:
    """The experiment of this name. Raises UnknownMetric, which lists the existing ones."""
    if not isinstance(name, str):
        raise UnknownMetric(f"an experiment is named by a text, not by {type(name).__name__}")
    if name in experiments:
        return experiments[name]
    raise UnknownMetric(
        f'no experiment is called "{name[:60]}"; the catalog has '
        f"{', '.join(sorted(experiments)) or 'none'}{did_you_mean(name, experiments)}"
    )
