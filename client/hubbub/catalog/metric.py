"""Metric: one question that an app may answer, and everything promised about it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from math import inf
from typing import Any, Final, Self

from hubbub.catalog.choice import Choice
from hubbub.catalog.policy import Caps, Release
from hubbub.catalog.rules import NAME, check, is_number, what_is_wrong_with_values
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.mechanisms import REGISTRY, AnyMechanism, Memoized, build, parameters
from hubbub.mechanisms.probability import MIN_EPSILON

__all__ = ["Limits", "Metric", "family_of"]

_CHECKED: Final = (
    *("description", "owner", "expires", "epoch", "epsilon", "min_batch"),
    *("sampling", "parameters"),
)
_TIER: Final = re.compile(r"[0-9.e+-]{1,16}")
# A batch travels as one message, and the services take none above this.
MAX_BATCH_BYTES: Final = 64 << 20
# What sealing and framing add to a payload, rounded up.
_SEALED_MORE_BYTES: Final = 64


def family_of(stream: str) -> str:
    """The metric that a stream is of: a stream is a metric's name, or that and a tier."""
    return stream.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one device may say about one metric. Raises BadParameter out of range."""

    reports_per_epoch: int
    lifetime_epsilon: float

    def __post_init__(self) -> None:
        check(self, ("reports_per_epoch", "lifetime_epsilon"))


@dataclass(frozen=True, slots=True)
class Metric:
    """One entry of the catalog.

    values: None for a metric over strings or numbers.
    tiers: smaller epsilons that a person may ask for instead, ascending. Each is a stream.
    choice: how the mechanism was chosen, if it was; says nothing about what totals mean.
    sampling: the chance that a device takes part in an epoch at all; its own coin says so.
    release: how its numbers may be published outside, if they may.
    caps: what all metrics of its catalog together may say about one person.
    memoized: the randomizer again, if it has a permanent step.
    report_loss: what one report can lose, in nats, as proven of the mechanism.
    lifetime_loss: what all reports of one unchanged value can lose; infinite if not memoized.

    Raises:
        BadParameter: a field holds what it may not; the mechanism cannot be built so, loses more
            than `epsilon`, or has no tiers.
    """

    name: str
    description: str
    owner: str
    expires: date
    epoch: str
    mechanism: str
    epsilon: float
    min_batch: int
    limits: Limits
    values: tuple[str, ...] | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    choice: Choice | None = None
    tiers: tuple[float, ...] = ()
    release: Release | None = None
    sampling: float = 1.0
    caps: Caps = Caps()  # noqa: RUF009 a frozen value
    randomizer: AnyMechanism = field(init=False, repr=False, compare=False)
    memoized: Memoized | None = field(init=False, repr=False, compare=False)
    report_loss: float = field(init=False, repr=False, compare=False)
    lifetime_loss: float = field(init=False, repr=False, compare=False)
    _index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        randomizer = build(self.mechanism, **self.arguments)
        report_loss = randomizer.privacy_loss()
        if not report_loss <= self.epsilon:
            raise BadParameter(
                f"one report of {self.mechanism} with these parameters loses "
                f"{report_loss:.6g} nats, above epsilon {self.epsilon:g}; "
                "raise epsilon or lie more"
            )
        batch_bytes = self.min_batch * (randomizer.layout.payload_bytes + _SEALED_MORE_BYTES)
        if not batch_bytes <= MAX_BATCH_BYTES:
            size = f"{batch_bytes / (1 << 20):.1f} MiB, above {MAX_BATCH_BYTES >> 20}"
            raise BadParameter(
                f"a minimum batch of {self.min_batch} reports is {size}; "
                "lower min_batch or choose a shorter payload"
            )
        if self.tiers and "epsilon" not in self.arguments:
            raise BadParameter(
                f"{self.mechanism} has no epsilon of its own to scale; leave tiers out"
            )
        memoized = randomizer if isinstance(randomizer, Memoized) else None
        forever = memoized.permanent_loss() if memoized else inf
        object.__setattr__(self, "memoized", memoized)
        object.__setattr__(self, "randomizer", randomizer)
        object.__setattr__(self, "report_loss", report_loss)
        object.__setattr__(self, "lifetime_loss", forever)
        object.__setattr__(self, "_index", {v: i for i, v in enumerate(self.values or ())})

    def _check(self) -> None:
        """Raises BadParameter for what stands in a field by itself."""
        check(self, _CHECKED)
        name, slash, tier = self.name.partition("/") if isinstance(self.name, str) else ("", "", "")
        if not (NAME.fullmatch(name) and (not slash or _TIER.fullmatch(tier))):
            raise BadParameter(f"name must match {NAME.pattern}")
        if not (isinstance(self.mechanism, str) and self.mechanism in REGISTRY):
            raise BadParameter(f"mechanism must be one of {', '.join(REGISTRY)}")
        if self.parameters.keys() & {"epsilon", "categories"}:
            raise BadParameter("parameters hold epsilon or categories, which follow from the rest")
        listed = REGISTRY[self.mechanism].VALUES == "categories"
        if listed != (self.values is not None):
            raise BadParameter(f"{self.mechanism} {'needs' if listed else 'takes no'} values")
        if listed and (wrong := what_is_wrong_with_values(self.values)):
            raise BadParameter(f"values: {wrong}")
        if not self.limits.lifetime_epsilon >= self.epsilon:
            raise BadParameter("lifetime_epsilon must be a number not below epsilon; raise it")
        ascend = isinstance(self.tiers, tuple) and all(map(is_number, self.tiers))
        if not (
            ascend
            and list(self.tiers) == sorted(set(self.tiers))
            and all(MIN_EPSILON <= tier < self.epsilon for tier in self.tiers)
            and len(set(self.streams)) == 1 + len(self.tiers)
        ):
            raise BadParameter(
                f"tiers must ascend from {MIN_EPSILON} to below epsilon, and differ in six digits"
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """What its mechanism is built from."""
        given: dict[str, Any] = dict(self.parameters)
        if "epsilon" in parameters(self.mechanism):
            given["epsilon"] = self.epsilon
        if self.values is not None:
            given["categories"] = len(self.values)
        return given

    @property
    def family(self) -> str:
        """The metric's name in the catalog, whichever tier this is."""
        return family_of(self.name)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of its streams: its own, and its tiers'."""
        return (self.name, *map(self._stream, self.tiers))

    @property
    def tier(self) -> str:
        """Which tier this is, as its stream's name says it; "" for the metric itself."""
        return self.name.partition("/")[2]

    def at(self, epsilon: float) -> Self:
        """The same question at a smaller epsilon: a stream of its own, with totals of its own."""
        scaled = {
            name: number * epsilon / self.epsilon if name == "permanent_epsilon" else number
            for name, number in self.parameters.items()
        }
        name = self._stream(epsilon)
        return replace(self, name=name, epsilon=epsilon, parameters=scaled, choice=None, tiers=())

    def stream_within(self, max_epsilon: float) -> str | None:
        """The stream of the largest epsilon that is allowed; None if none is."""
        if self.epsilon <= max_epsilon:
            return self.name
        allowed = [epsilon for epsilon in self.tiers if epsilon <= max_epsilon]
        return self._stream(allowed[-1]) if allowed else None

    def _stream(self, tier: float) -> str:
        return f"{self.name}/{tier:g}"

    def code(self, value: Any) -> Any:
        """The mechanism's value for what the app reported.

        Raises:
            ValueOutOfDomain: not one of the metric's values. The message never shows it.
        """
        if self.values is None:
            self.randomizer.check(value)
            return value
        code = self._index.get(value) if isinstance(value, str) else None
        if code is None:
            raise ValueOutOfDomain(
                f'metric "{self.name}": the value is not one of its {len(self.values)} values'
            )
        return code

    def definition(self) -> dict[str, Any]:
        """What may never change under this name: it decides what totals mean."""
        return {
            "mechanism": self.mechanism,
            "version": self.randomizer.VERSION,
            "epsilon": self.epsilon,
            "parameters": dict(sorted(self.parameters.items())),
            "values": None if self.values is None else list(self.values),
            "epoch": self.epoch,
        }

    def digest(self) -> str:
        """SHA-256 of the definition, in hex."""
        text = json.dumps(self.definition(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
