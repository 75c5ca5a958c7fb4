"""Metric: one question that an app may answer, and everything promised about it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, Self

from hubbub.catalog import kinds
from hubbub.catalog.central import CentralPromise, central_conflicts
from hubbub.catalog.choice import AUTO, CHOICE, Choice
from hubbub.catalog.epochs import EPOCH_SECONDS
from hubbub.catalog.fields import Entry, check, dumped, entry
from hubbub.catalog.limits import Limits, conflicts
from hubbub.catalog.policy import Caps, Release
from hubbub.catalog.randomizer import randomizer_of, refuse_large_batch
from hubbub.catalog.rules import NAME
from hubbub.catalog.tables import table_of
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.mechanisms import REGISTRY, AnyMechanism, Memoized, parameters
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON

__all__ = ["DOMAINS", "Metric", "metric_name_of"]

DOMAINS: Final = {"strings": "string", "numbers": "number"}
"""What `domain` says for each kind of value that is not listed."""

_TIER: Final = re.compile(r"[0-9.e+-]{1,16}")
_EPSILON: Final = kinds.number("a number of nats", MIN_EPSILON, MAX_EPSILON)


def metric_name_of(stream: str) -> str:
    """The metric that a stream is of: a stream is a metric's name, or that and a tier."""
    return stream.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One entry of the catalog: its fields, each with all that is said of it.

    values: None for a metric over strings or numbers.
    choice: says nothing about what totals mean.
    caps: what all metrics of its catalog together may say about one person.
    memoized: the randomizer again, if it has a permanent step.
    report_loss: what one report can lose, in nats, as proven of the mechanism.
    lifetime_loss: what all reports of one unchanged value can lose; infinite if not memoized.

    Raises:
        BadParameter: a field holds what it may not; the mechanism cannot be built so, loses more
            than `epsilon`, or has no tiers.
    """

    name: str
    description: str = field(
        metadata=entry(
            kinds.text("says what is asked"),
            "What is asked, as people read it: on pages, on the privacy card, on their device.",
            '"Colour theme in use at the end of the day"',
            write="write one",
        )
    )
    owner: str = field(
        metadata=entry(
            kinds.text("says who answers for it"),
            "Who asks, and answers questions about it.",
            '"desktop@example.org"',
            write="write one",
            label="asked by",
        )
    )
    expires: date = field(
        metadata=entry(
            kinds.day("after which clients stop reporting"),
            "The last day on which devices report.",
            "2027-06-30",
            write="write YYYY-MM-DD",
            label="until",
        )
    )
    mechanism: str = field(
        metadata=entry(
            kinds.one_of(lambda: (AUTO, *REGISTRY)),
            "How a device randomizes its value; `auto` chooses the mechanism with the least error.",
            '"unary.oue"',
            defines=True,
        )
    )
    epsilon: float = field(
        metadata=entry(
            _EPSILON,
            "The most that one report may say about a person, in nats.",
            "1.0",
            defines=True,
        )
    )
    parameters: Mapping[str, float] = field(
        default_factory=dict,
        metadata=entry(
            kinds.numbers_by_name(),
            "The mechanism's own numbers, each a field of its name.",
            written=False,
            defines=True,
            always=True,
        ),
    )
    values: tuple[str, ...] | None = field(
        default=None,
        metadata=entry(
            kinds.values(),
            "The values that can be reported, for a mechanism over listed values.",
            '["light", "dark", "system"]',
            others={
                "values_file": Entry(
                    kinds.path("a text file, one value a line"),
                    "The same from a file (plain or .gz) beside the catalog.",
                    '"themes.txt"',
                ),
                "domain": Entry(
                    kinds.one_of(DOMAINS.values),
                    "What can be reported instead of listed values, as the mechanism has it.",
                    '"string"',
                ),
            },
            defines=True,
            always=True,
        ),
    )
    epoch: str = field(
        metadata=entry(
            kinds.one_of(lambda: EPOCH_SECONDS),
            "How long reports are added up, in UTC.",
            '"day"',
            label="counted by the",
            defines=True,
        )
    )
    min_batch: int = field(
        metadata=entry(
            # A batch hides a report among its others; below ten there is nobody to hide among.
            kinds.whole(10, 1_000_000),
            "The fewest reports that ever leave the shuffler together.",
            "1000",
            label="minimum batch",
        )
    )
    limits: Limits = field(
        metadata=entry(
            table_of(Limits, flat=True),
            "What one device may say about this metric.",
            "{ reports_per_epoch = 1, lifetime_epsilon = 50.0 }",
            write="write limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }",
        )
    )
    choice: Choice | None = field(
        default=None, metadata=entry(CHOICE, "How the mechanism was chosen.", written=False)
    )
    tiers: tuple[float, ...] = field(
        default=(),
        metadata=entry(
            kinds.ascending(
                f"a list of numbers of nats in [{MIN_EPSILON}, epsilon), ascending",
                f"ascend from {MIN_EPSILON} to below epsilon, and differ in six digits",
                _EPSILON,
            ),
            "Smaller epsilons that a person may ask for instead; each is a stream of its own.",
            "[0.25, 0.5]",
            write="write tiers = [0.25, 0.5]",
        ),
    )
    sampling: float = field(
        default=1.0,
        metadata=entry(
            # One device in a million; fewer are asked by asking in fewer places.
            kinds.number("a chance", 1e-6, 1),
            "The chance that a device takes part in an epoch; its own coin says so.",
            "0.5",
            write="write sampling = 0.1",
        ),
    )
    release: Release | None = field(
        default=None,
        metadata=entry(
            table_of(Release),
            "How its numbers may be published outside; none may without it.",
            '{ mechanism = "laplace", epsilon = 0.5 }',
            write='write release = { mechanism = "laplace", epsilon = 0.5 }, '
            "for gaussian with delta",
        ),
    )
    central_epsilon: float | None = field(
        default=None,
        metadata=entry(
            _EPSILON,
            "The most that a whole epoch, shuffled, may say about one person, in nats.",
            "1.0",
            label="central epsilon",
            defines=True,
        ),
    )
    crowd: int | None = field(
        default=None,
        metadata=entry(
            kinds.whole(10, 1_000_000),
            "The fewest reports of an epoch that leave the shuffler, as a whole or not at all.",
            "30000",
            label="crowd",
            defines=True,
        ),
    )
    delta: float = field(
        default=1e-8,
        metadata=entry(
            kinds.number("a chance", 1e-15, 0.1),
            "The chance with which a whole epoch may say more than `central_epsilon`.",
            "1e-8",
            defines=True,
        ),
    )
    honest: float = field(
        default=0.9,
        metadata=entry(
            kinds.number("a share", 0, 1, "(]"),
            "The share of a crowd's reports that is counted on to lie as it should.",
            "0.9",
            defines=True,
        ),
    )
    max_local_epsilon: float = field(
        default=8.0,
        metadata=entry(
            _EPSILON,
            "The most that a report may say to who sees it alone, whatever the crowd allows.",
            "8.0",
        ),
    )
    rolling: bool = field(
        default=False,
        metadata=entry(
            kinds.flag(),
            "Whether a crowd leaves whenever it has gathered, and not when its epoch is over.",
            "true",
            defines=True,
        ),
    )
    caps: Caps = Caps()  # noqa: RUF009 a frozen value
    randomizer: AnyMechanism = field(init=False, repr=False, compare=False)
    memoized: Memoized | None = field(init=False, repr=False, compare=False)
    report_loss: float = field(init=False, repr=False, compare=False)
    lifetime_loss: float = field(init=False, repr=False, compare=False)
    _index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        built = randomizer_of(self.mechanism, self.arguments, self.epsilon)
        if not self.crowd:  # which leaves in cuts
            refuse_large_batch(self.min_batch, built.randomizer)
        if self.tiers and "epsilon" not in self.arguments:
            raise BadParameter(
                f"{self.mechanism} has no epsilon of its own to scale; leave tiers out"
            )
        for name in ("randomizer", "memoized", "report_loss", "lifetime_loss"):
            object.__setattr__(self, name, getattr(built, name))
        object.__setattr__(self, "_index", {v: i for i, v in enumerate(self.values or ())})

    def _check(self) -> None:
        """Raises BadParameter for what stands in a field by itself."""
        check(self)
        name, slash, tier = self.name.partition("/") if isinstance(self.name, str) else ("", "", "")
        if not (NAME.fullmatch(name) and (not slash or _TIER.fullmatch(tier))):
            raise BadParameter(f"name must match {NAME.pattern}")
        if self.mechanism == AUTO:
            raise BadParameter(f"mechanism must be one of {', '.join(REGISTRY)}")
        if self.parameters.keys() & {"epsilon", "categories"}:
            raise BadParameter("parameters hold epsilon or categories, which follow from the rest")
        listed = REGISTRY[self.mechanism].VALUES == "categories"
        if listed != (self.values is not None):
            raise BadParameter(f"{self.mechanism} {'needs' if listed else 'takes no'} values")
        found = conflicts(self.epsilon, self.limits, self.tiers)
        if found := found | central_conflicts(self):
            said = "; ".join(f"{name}: {problem}" for name, problem in found.items())
            raise BadParameter(said)

    @property
    def central(self) -> CentralPromise | None:
        """What a whole shuffled epoch promises; None if nothing."""
        if self.central_epsilon is None or self.crowd is None:
            return None
        return CentralPromise(
            self.central_epsilon, self.crowd, self.delta, self.honest, self.max_local_epsilon
        )

    @property
    def mix(self) -> str:
        """How its reports leave the shuffler: "pool", "epoch" or "rolling"."""
        if self.central is None:
            return "pool"
        return "rolling" if self.rolling else "epoch"

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
    def base_name(self) -> str:
        """The metric's name in the catalog, whichever tier this is."""
        return metric_name_of(self.name)

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
        text = str(value).lower() if isinstance(value, bool) else value
        code = self._index.get(text) if isinstance(text, str) else None
        if code is None:
            raise ValueOutOfDomain(
                f'metric "{self.name}": the value is not one of its {len(self.values)} values'
            )
        return code

    def definition(self) -> dict[str, Any]:
        """What may never change under this name: it decides what totals mean."""
        told = dumped(self, defines=True)
        return {"mechanism": told.pop("mechanism"), "version": self.randomizer.VERSION, **told}

    def digest(self) -> str:
        """SHA-256 of the definition, in hex."""
        text = json.dumps(self.definition(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
