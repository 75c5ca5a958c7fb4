"""Metric: one question that an app may answer, and everything promised about it."""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import field, replace
from datetime import date
from math import inf
from typing import TYPE_CHECKING, Any, Final, Self

from hubbub.catalog.breakdown import BREAKDOWN, Rules, streams_of
from hubbub.catalog.crowds.crowd import EPSILON, Crowd
from hubbub.catalog.default_and_cover import DEFAULT, refusal_of_default
from hubbub.catalog.discovery import DISCOVER, loss_of_either
from hubbub.catalog.epochs_and_periods import PERIOD, REPORT_ON, SAMPLING
from hubbub.catalog.experiments import EXPERIMENT, Experiment
from hubbub.catalog.limits_and_budgets import RELEASE, Caps, Limits, Release
from hubbub.catalog.mechanism_choice import AUTO, CHOICE, Choice
from hubbub.catalog.metric_checks import check_fields, refuse_large_batch, refuse_uneven_lies
from hubbub.catalog.models.model_metric import EPOCH, MODEL, loss_of_judging
from hubbub.catalog.plain_python_value import as_python
from hubbub.catalog.values.event_history_kinds import RATE, STEPS, WEEKS, Ratio
from hubbub.catalog.values.list_versions import GROWN, digests_of, list_names, tier_of
from hubbub.catalog.values.part_values import OUTSIDE, PARTS, RANGES, PartRange, code_of, size_of
from hubbub.catalog.values.sets_and_vectors import COORDINATES
from hubbub.catalog.values.value_kind import ValueKind
from hubbub.catalog.values.value_kind_registry import KINDS, kind_named
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import Entry, dumped, part, setting, settings, table_of
from hubbub.fields.frozen import set_derived
from hubbub.fields.rules import metric_name_of
from hubbub.mechanisms import REGISTRY, AnyMechanism, Memoized, build, parameters
from hubbub.mechanisms.part_and_cell_names import parts_of
from hubbub.mechanisms.probability import MIN_EPSILON
from hubbub.sealing.hpke import KEMS, SEAL_BYTES, X25519, Kem

if TYPE_CHECKING:
    from hubbub.catalog.alerts import Alert
    from hubbub.catalog.models.learning import Learning

DOMAINS: Final = {"strings": "string", "numbers": "number"}
"""What `domain` says for each kind of value that is not listed."""


def _alert() -> kinds.Kind:
    from hubbub.catalog.alerts import Alert  # noqa: PLC0415 of the operator's bundle alone

    return table_of(Alert)


@settings
class Metric:
    """One metric of the catalog, with its declared fields.

    Args:
        values: None for a metric over strings or numbers.
        choice: how `auto` chose the mechanism; not part of the definition.
        caps: limits of one person over all metrics of the catalog.
        development: of a development installation, which protects nobody.
        filled: the catalog has `cover`, so batches may contain fillers.

    Attributes:
        base_name: name in the catalog, without the tier.
        tier: name of the tier; "" for the metric itself.
        stream: of the current values at its own epsilon.
        own_streams: all streams of these values.
        streams: its own, those of cells, tiers and former lists.
        fewest: smallest number of reports that leave the shuffler, and that an answer needs.
        made_each: average number of dummies that a device makes per report.
        central: the crowd as it applies; None for none, as in development.
        memoized: the randomizer, if it has a permanent response.
        report_loss: privacy loss of one report in nats, proven, in every role of a device.
        randomizer_loss: the same of the randomizer alone.
        lifetime_loss: loss of all reports of one unchanged value; infinite if not memoized.

    Raises:
        BadParameter: a field has a value that is not permitted; the mechanism cannot be built,
            loses more than `epsilon`, or has no tiers.
    """

    name: str
    description: str = setting(
        kinds.text("describes the question"),
        "The question in words, for pages, the privacy card and the person's device.",
        '"Colour theme in use at the end of the day"',
        write="write one",
    )
    owner: str = setting(
        kinds.text("names the responsible person or team"),
        "The person or team that is responsible for the metric.",
        '"desktop@example.org"',
        write="write one",
        label="asked by",
    )
    expires: date = setting(
        kinds.day("after which clients stop reporting"),
        "The last day on which devices report.",
        "2027-06-30",
        write="write YYYY-MM-DD",
        label="until",
    )
    mechanism: str = setting(
        kinds.word_kind(lambda: (AUTO, *REGISTRY)),
        "How a device randomizes its value; `auto` compares exact errors and chooses the "
        "shortest report within 5% of the least error.",
        '"auto"',
        in_definition=True,
    )
    epsilon: float = setting(
        EPSILON,
        "Largest privacy loss of one report, in nats.",
        "1.0",
        in_definition=True,
    )
    parameters: Mapping[str, float] = setting(
        kinds.NUMBERS_BY_NAME,
        "The mechanism's own numbers, each a field of its name.",
        written=False,
        in_definition=True,
        always=True,
        default_factory=dict,
    )
    values: tuple[str, ...] | None = setting(
        kinds.VALUES,
        "The values that can be reported, for a mechanism over listed values.",
        '["light", "dark", "system"]',
        others={
            "values_file": Entry(
                kind=kinds.path("a text file, one value a line"),
                meaning="The values, from a file (plain or .gz) beside the catalog.",
                example='"themes.txt"',
            ),
            "parts": PARTS,
            "coordinates": COORDINATES,
            "steps": STEPS,
            "weeks": WEEKS,
            "domain": Entry(
                kind=kinds.word_kind(DOMAINS.values),
                meaning="Type of the values, if they are not listed.",
                example='"string"',
            ),
        },
        in_definition=True,
        always=True,
        default=None,
    )
    epoch: str = setting(
        EPOCH,
        "The time over which reports are added up, in UTC; weeks begin on Thursdays.",
        '"day"',
        label="counted by the",
        in_definition=True,
    )
    min_batch: int = setting(
        # A batch hides a report among its others; below ten there is nobody to hide among.
        kinds.integer(10, 1_000_000),
        "Smallest number of reports that leave the shuffler together.",
        "1000",
        label="minimum batch",
    )
    limits: Limits = setting(
        table_of(Limits, flat=True),
        "Limits of one device for this metric.",
        "{ reports_per_epoch = 1, lifetime_epsilon = 50.0 }",
        write="write limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }",
    )
    choice: Choice | None = setting(
        CHOICE, "How the mechanism was chosen.", written=False, default=None
    )
    tiers: tuple[float, ...] = setting(
        kinds.ascending(
            f"a list of numbers of nats in [{MIN_EPSILON}, epsilon), ascending",
            f"ascend from {MIN_EPSILON} to below epsilon, and differ in six digits",
            EPSILON,
        ),
        "Smaller epsilons that a person may choose; each is a separate stream.",
        "[0.25, 0.5]",
        write="write tiers = [0.25, 0.5]",
        default=(),
    )
    sampling: float = field(default=1.0, metadata=SAMPLING)
    discover: float = field(default=0.0, metadata=DISCOVER)
    default: str | float | None = field(default=None, metadata=DEFAULT)
    period: str = field(default="", metadata=PERIOD)
    report_on: str = field(default="", metadata=REPORT_ON)
    release: Release | None = field(default=None, metadata=RELEASE)
    crowd: Crowd | None = part(Crowd)
    kind: str = setting(
        kinds.word_kind(KINDS.keys),
        "What the app reports, instead of `values` and `domain`: a boolean, a whole number, a "
        "number, a timedelta, or a size with its unit; a set of the `values`; a vector with "
        "`coordinates`; or events, of which the device computes a funnel (`steps`), its activity "
        "(days of use) or retention (`weeks`), or a `rate`.",
        '"duration"',
        in_definition=True,
        default="",
    )
    edges: tuple[float, ...] = setting(
        kinds.EDGES,
        "Edges that cut a number's range, for its distribution: these, or `parts` steps that grow "
        "by one factor. Without edges the metric estimates the mean.",
        "[0, 10, 100, 1000]",
        in_definition=True,
        default=(),
    )
    outside: str = field(default="", metadata=OUTSIDE)
    other: bool = setting(
        kinds.FLAG,
        'Whether an unlisted text counts as "other", which is then one of the values.',
        "true",
        in_definition=True,
        default=False,
    )
    rate: Ratio | None = field(default=None, metadata=RATE)
    beginnings: tuple[str, ...] = setting(
        kinds.names(1, 255),
        "Common beginnings of strings, for `tree`: a device sends the beginning as one number and "
        "uses all bits for the rest.",
        '["https://", "https://www."]',
        write='write beginnings = ["https://"]',
        in_definition=True,
        default=(),
    )
    ranges: Mapping[str, PartRange] = field(default_factory=dict, metadata=RANGES)
    breakdown: Rules = field(default_factory=dict, metadata=BREAKDOWN)
    experiment: Experiment | None = field(default=None, metadata=EXPERIMENT)
    grown: tuple[int, ...] = field(default=(), metadata=GROWN)
    unit: str = setting(
        kinds.text("gives the unit of the numbers"),
        "Unit of the numbers, shown with every mean and range.",
        '"ms"',
        label="in",
        default="",
    )
    kem: Kem = setting(
        kinds.word_kind(lambda: KEMS),
        "Encryption of reports: `x-wing` also protects reports that are recorded today from a "
        "future quantum computer; each is 1,088 bytes longer.",
        '"x-wing"',
        write='write kem = "x-wing", or leave it out',
        label="sealed by",
        in_definition=True,
        default=X25519,
    )
    candidates: tuple[str, ...] = setting(
        kinds.strings(),
        "Strings that a query without a list looks for; only the operator's bundle contains them.",
        '"domains.txt"',
        operator=True,
        default=(),
    )
    alert: "Alert | None" = setting(
        kinds.deferred(_alert),
        "When an alert is sent: judged after every epoch, with its errors.",
        '{ when = "change", confidence = 0.99 }',
        write='write alert = { when = "change", confidence = 0.99 }',
        operator=True,
        default=None,
    )
    percentiles: tuple[float, ...] = setting(
        kinds.ascending(
            "a list of ascending percentiles",
            "be a list of ascending percentiles in [1, 100), such as [50, 90], not [0.5, 0.9]",
            kinds.number("a percentile", 1, 100, "[)"),
        ),
        "With buckets or edges: percentiles that matter most; `auto` weighs them, answers show "
        "them.",
        "[50, 99]",
        operator=True,
        default=(),
    )
    keep: str = setting(
        kinds.DAYS,
        "How long totals are kept after their epoch; then they are deleted.",
        '"400d"',
        label="kept for",
        operator=True,
        default="",
    )
    supersedes: str = setting(
        kinds.text("names the metric that this one continues"),
        "The metric of this catalog that this metric continues under a new name; trends join both.",
        '"theme"',
        write="write the name of the former metric",
        label="continues",
        operator=True,
        default="",
    )
    model: "Learning | None" = field(default=None, metadata=MODEL)
    caps: Caps = Caps()
    development: bool = False
    filled: bool = False
    base_name: str = field(init=False, repr=False, compare=False)
    tier: str = field(init=False, repr=False, compare=False)
    stream: str = field(init=False, repr=False, compare=False)
    own_streams: tuple[str, ...] = field(init=False, repr=False, compare=False)
    streams: tuple[str, ...] = field(init=False, repr=False, compare=False)
    fewest: int = field(init=False, repr=False, compare=False)
    made_each: float = field(init=False, repr=False, compare=False)
    central: Crowd | None = field(init=False, repr=False, compare=False)
    randomizer: AnyMechanism = field(init=False, repr=False, compare=False)
    memoized: Memoized | None = field(init=False, repr=False, compare=False)
    report_loss: float = field(init=False, repr=False, compare=False)
    randomizer_loss: float = field(init=False, repr=False, compare=False)
    lifetime_loss: float = field(init=False, repr=False, compare=False)
    _index: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _codes: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = metric_name_of(self.name) if isinstance(self.name, str) else ""
        set_derived(self, base_name=name)
        check_fields(self)
        crowd = self.crowd if self.crowd and self.crowd.reports else None
        if crowd:
            learning = self.model
            epochs = learning.reports if learning else crowd.epochs_together(self.epoch)
            crowd = replace(crowd, epochs=epochs)
        central = None if self.development else crowd
        set_derived(
            self,
            crowd=crowd,
            central=central,
            made_each=central.dummies_each if central else 0.0,
            fewest=1 if self.development else self.min_batch,
        )
        self._name_streams()
        randomizer = build(self.mechanism, **self.arguments)
        report_loss = randomizer.privacy_loss()
        if not report_loss <= self.epsilon:
            raise BadParameter(
                f"epsilon: one report of {self.mechanism} with these parameters loses "
                f"{report_loss:.6g} nats, above {self.epsilon:g}; raise epsilon, or randomize more"
            )
        if not self.crowd:  # a crowd leaves in several messages
            refuse_large_batch(self.min_batch, randomizer, self.kem)
        else:
            refuse_uneven_lies(self.mechanism, randomizer)
        if self.tiers and "epsilon" not in self.arguments:
            raise BadParameter(
                f"tiers: {self.mechanism} has no epsilon of its own to scale; leave them out"
            )
        memoized = randomizer if isinstance(randomizer, Memoized) else None
        index = {value: place for place, value in enumerate(self.values or ())}
        by_text = self.value_kind.ONE_TEXT and not (self.parts or self.model)
        set_derived(
            self,
            randomizer=randomizer,
            memoized=memoized,
            report_loss=report_loss,
            randomizer_loss=report_loss,
            lifetime_loss=memoized.permanent_loss() if memoized else inf,
            _index=index,
            _codes=index if by_text else {},
        )
        # PRIVACY: a device reports in one role only, so the largest loss counts.
        set_derived(self, report_loss=max(loss_of_either(self), loss_of_judging(self)))
        if self.default is not None and (refused := refusal_of_default(self)):
            raise BadParameter(refused)

    def _name_streams(self) -> None:
        """Names the streams: one per list of values, per tier of it, and per cell of that."""
        lists = list_names(self.name, self.grown, len(self.values or ()))
        stream_lists = [
            tuple(
                stream
                for name in (list_name, *(f"{list_name}/{tier:g}" for tier in self.tiers))
                for stream in streams_of(name, self.breakdown)
            )
            for list_name in lists
        ]
        set_derived(
            self,
            tier=tier_of(self.name),
            stream=lists[-1],
            own_streams=stream_lists[-1],
            streams=tuple(stream for streams in stream_lists for stream in streams),
        )

    def with_name(self, name: str) -> Self:
        """The metric under the name of some of its cells, without checking or building it again."""
        named = copy(self)
        set_derived(named, name=name)
        named._name_streams()  # noqa: SLF001 of the same class
        return named

    @property
    def mix(self) -> str:
        """How its reports leave the shuffler: "pool", "epoch" or "rolling"."""
        if self.central is None:
            return "pool"
        return "rolling" if self.central.rolling else "epoch"

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The values of each part, by its name; empty where a value has no parts."""
        if self.values is None or REGISTRY[self.mechanism].FAMILY != "pairs":
            return {}
        return parts_of(self.values)

    @property
    def sealed_bytes(self) -> int:
        """The length of a sealed report, in bytes."""
        return self.randomizer.layout.payload_bytes + SEAL_BYTES[self.kem]

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters of its mechanism."""
        arguments_of: dict[str, Any] = dict(self.parameters)
        if "epsilon" in parameters(self.mechanism):
            arguments_of["epsilon"] = self.epsilon
        if self.values is not None:
            arguments_of |= size_of(self.mechanism, self.values)
        if self.beginnings:
            arguments_of["beginnings"] = self.beginnings
        return arguments_of

    def at_tier(self, epsilon: float) -> Self:
        """The metric at a smaller epsilon, with its current values only: a single stream."""
        return replace(self.tier_alone(epsilon), name=f"{self.stream}/{epsilon:g}", grown=())

    def tier_alone(self, epsilon: float) -> Self:
        """The metric at a smaller epsilon, with all lists of values that it has had."""
        scaled = {
            name: number * epsilon / self.epsilon if name == "permanent_epsilon" else number
            for name, number in self.parameters.items()
        }
        tier_metric = replace(self, name=f"{self.name}/{epsilon:g}", choice=None, tiers=())
        return replace(tier_metric, epsilon=epsilon, parameters=scaled)

    def stream_within(self, max_epsilon: float, max_local: float) -> str | None:
        """The stream with the largest epsilon that is allowed, centrally and locally; or None."""
        promised = min(self.crowd.epsilon if self.crowd else self.epsilon, self.epsilon)
        if promised <= max_epsilon and self.epsilon <= max_local:
            return self.stream
        allowed = [epsilon for epsilon in self.tiers if epsilon <= min(max_epsilon, max_local)]
        return f"{self.stream}/{allowed[-1]:g}" if allowed else None

    def code(self, value: Any) -> Any:
        """Encodes a reported value. Raises ValueOutOfDomain, which never shows it."""
        code = self._codes.get(value) if type(value) is str else None
        if code is not None:
            return code
        if self.model:
            raise ValueOutOfDomain(f'"{self.name}" is a model: call learn(), not report()')
        value = as_python(value, self.values or ())
        try:
            if self.parts:
                parted: Any = self.randomizer
                return code_of(parted, self.values or (), value, self.ranges)
            return self.value_kind.code(self, self._index, value)
        except ValueOutOfDomain as error:
            raise type(error)(f'metric "{self.name}": {error}') from None

    @property
    def value_kind(self) -> ValueKind:
        """The kind of its values."""
        return kind_named(self.kind)

    @property
    def clamps(self) -> bool:
        """Whether a number outside the range counts as its nearest end."""
        return self.outside == "clamp" or (not self.outside and self.value_kind.NUMERIC)

    def definition(self) -> dict[str, Any]:
        """The fields that may never change under this name, since they decide what totals mean."""
        table = dumped(self, in_definition=True)
        if self.breakdown:  # its values may grow
            table["breakdown"] = sorted(self.breakdown)
        if self.discover:  # whatever the share of devices
            table["discover"] = REGISTRY["tree"].VERSION
        return {"mechanism": table.pop("mechanism"), "version": self.randomizer.VERSION, **table}

    def digest(self) -> str:
        """SHA-256 of the definition, in hex; with appended values, of the first list's."""
        return digests_of(self)[self.name]


def versions_of(metric: Metric) -> Iterator[Metric]:
    """Yields the metric with each list, as its own stream has it, the first list first."""
    if not metric.grown:
        yield metric
        return
    assert metric.values is not None  # noqa: S101 of a list alone
    sizes = (*metric.grown, len(metric.values))
    names = list_names(metric.name, metric.grown, sizes[-1])
    for name, size in zip(names, sizes, strict=True):
        yield replace(metric, name=name, values=metric.values[:size], grown=(), alert=None)
