"""The content of a bundle, the file that an app ships for its catalog."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hubbub.bundles.encoding import from_text
from hubbub.bundles.key_handover import Handover, line_of
from hubbub.bundles.metric_promise import Promise
from hubbub.bundles.opening_keys import OpeningKeyPublic, is_development
from hubbub.catalog.breakdown import conditions_in, streams_of
from hubbub.catalog.default_and_cover import uncovered
from hubbub.catalog.discovery import finder_of
from hubbub.catalog.epochs_and_periods import MINUTE
from hubbub.catalog.experiments import Experiment, clashes, experiments_of
from hubbub.catalog.limits_and_budgets import Budget, Caps
from hubbub.catalog.metric import Metric, versions_of
from hubbub.catalog.supersedes import misfits
from hubbub.catalog.values.list_versions import STREAM, digests_of
from hubbub.errors import BadParameter, BundleRefused, UnknownMetric
from hubbub.errors.message_words import did_you_mean, wrong_place
from hubbub.fields.field import check, fields_of, setting
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.kinds import text
from hubbub.fields.rules import NAME, is_signed_address, is_whole, metric_name_of
from hubbub.oblivious.key_config import read_config
from hubbub.sealing.hpke import X_WING

if TYPE_CHECKING:
    from hubbub.bundles.tokens import TokenIssuer
    from hubbub.bundles.transparency_log import LogProof, NoteKey
    from hubbub.catalog.models.learning import Learning


@frozen()
class Runs:
    """The party that runs each service, as text for people: a name, and where it is.

    Raises BadParameter if a party is not a text.
    """

    shuffler: str = setting(
        text("names who runs the shuffler"),
        "Who runs the shuffler: sees addresses, and no answer.",
        '"Example Foundation, Oslo"',
    )
    aggregator: str = setting(
        text("names who runs the aggregator"),
        "Who runs the aggregator: sees randomized answers, and no address.",
        '"Example Ltd, Dublin"',
    )

    def __post_init__(self) -> None:
        check(self)

    @property
    def apart(self) -> bool:
        """Whether they are two parties, so that only together they could identify senders."""
        return self.shuffler.casefold() != self.aggregator.casefold()


_CERTIFICATE: Final = r"-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----"
_DIGEST: Final = r"[0-9a-f]{64}"
_LAST_SERIAL: Final = (1 << 53) - 1


@frozen(kw_only=True)
class Bundle:
    """The content of a bundle: metrics, keys for future epochs, the shuffler's address.

    Args:
        roots: PEM of the authorities of the shuffler's certificate; None for the system's.
        history: digest of the definition of every metric name ever used.
        operator: Ed25519 public key (32 bytes) that signed it.
        budget: budget of releases, if any metric has them.
        caps: limits of one person over all metrics, which devices keep.
        serial: grows from bundle to bundle; 0 for bundles of version 0.1.
        handovers: from the operator's first key to the one that signed it, oldest first.
        development: made with development keys, whose privacy settings protect nobody.
        runs: the parties that run shuffler and aggregator; None if the operator does not name them.
        log: transparency log that should contain it; None for none.
        gateway: the shuffler's key for relayed requests (RFC 9458); empty for none.
        cover: whether devices fill up with fillers.
        tokens: issuer of the tokens that reports need; None for reports without tokens.
        proof: that the log contains it, if the file has a proof.
        signed: content of the file that it was read from.

    Attributes:
        streams: every metric, tier and cell, by the stream's name.
        line: the operator's keys, oldest first; the last one signed it.
        experiments: experiments of its metrics, by name.

    Raises:
        BadParameter: a field has a value that is not permitted.
    """

    metrics: Mapping[str, Metric]
    keys: tuple[OpeningKeyPublic, ...]
    shuffler: str
    roots: str | None
    history: Mapping[str, str]
    operator: bytes = b""
    budget: Budget | None = None
    caps: Caps = Caps()
    serial: int = 0
    handovers: tuple[Handover, ...] = ()
    development: bool = False
    runs: "Runs | None" = None
    log: "NoteKey | None" = None
    gateway: bytes = b""
    cover: bool = False
    tokens: "TokenIssuer | None" = None
    promised: Mapping[str, Promise] = field(default_factory=dict)
    proof: "LogProof | None" = field(default=None, repr=False, compare=False)
    signed: bytes = field(default=b"", repr=False, compare=False)
    streams: Mapping[str, Metric] = field(init=False, repr=False, compare=False)
    line: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    experiments: Mapping[str, Experiment] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_names(self.metrics, self.history)
        _check_promised(self.promised, self.metrics, self.history)
        set_derived(self, experiments=experiments_of(self.metrics))
        for name, problem in misfits(self.metrics):
            raise BadParameter(f'metric "{name}": supersedes: {problem}')
        for name, problem in clashes(self.metrics):
            raise BadParameter(f'metric "{name}": {problem}')
        for name, place, problem in uncovered(self.metrics) if self.cover else ():
            raise BadParameter(f'metric "{name}": {place} {problem}')
        _check_keys(self.metrics, self.keys)
        _check_development(self.metrics, self.keys, development=self.development)
        if self.development or self.cover:
            metrics = {
                name: replace(metric, development=self.development, filled=self.cover)
                for name, metric in self.metrics.items()
            }
            set_derived(self, metrics=metrics)
        if not is_signed_address(self.shuffler):
            raise BadParameter(
                "shuffler must be HOST:PORT or https://HOST:PORT, as the clients dial it"
            )
        if self.roots is not None:
            _check_roots(self.roots)
        if self.gateway:
            read_config(self.gateway)
        if not (is_whole(self.serial) and 0 <= self.serial <= _LAST_SERIAL):
            raise BadParameter(f"serial must be a whole number in [0, {_LAST_SERIAL}]")
        streams = [
            part_of_metric(tier, name)
            for metric in self.metrics.values()
            for version in versions_of(metric)
            for tier in (version, *(version.at_tier(epsilon) for epsilon in version.tiers))
            for name in streams_of(tier.name, tier.breakdown)
        ]
        streams += [finder_of(metric) for metric in self.metrics.values() if metric.discover]
        set_derived(self, streams={stream.name: stream for stream in streams})
        if self.tokens:
            _check_tokens(self.metrics, self.streams)
        set_derived(self, line=line_of(self.handovers, self.operator) if self.operator else ())

    @property
    def is_operators(self) -> bool:
        """Whether it contains what devices do not need: it is the file for the aggregator."""
        return any(
            not member.is_default(member.of(metric))
            for metric in self.metrics.values()
            for member in fields_of(Metric)
            if member.entry.operator
        )

    def refuse_elsewhere(self, *, development: bool, path: str) -> None:
        """Raises BundleRefused if bundle and service disagree about being in development."""
        if self.development is not development:
            raise BundleRefused(f"{path}: {wrong_place(development=development)}")

    def metric(self, name: str) -> Metric:
        """The metric of this name, or a tier or cells of one. Raises UnknownMetric.

        A metric whose values have grown includes all its lists; the name of a stream selects one.
        """
        if isinstance(name, str) and name in self.metrics:
            return self.metrics[name]
        _check_name(name)
        metric_name, (cell, slash, tier) = metric_name_of(name), name.partition("/")
        metric = self.metrics.get(metric_name)
        if metric is None or f"{metric_name}{slash}{tier}" not in self.streams:
            return self.metric_of(name)
        if slash:
            tiers = {f"{epsilon:g}": epsilon for epsilon in metric.tiers if metric.grown}
            tier_metric = self.streams[f"{metric_name}/{tier}"]
            metric = metric.tier_alone(tiers[tier]) if tier in tiers else tier_metric
        return metric if cell == metric_name else part_of_metric(metric, name)

    def metric_of(self, stream: str) -> Metric:
        """The metric as asked in a stream: with one of its lists. Raises UnknownMetric."""
        if stream not in self.streams:
            base, _, tier = stream.partition("/")
            if tier and base in self.metrics:
                tiers = ", ".join(f"{tier:g}" for tier in self.metrics[base].tiers) or "none"
                raise UnknownMetric(f'metric "{base}" has no tier "{tier}"; it has {tiers}')
            name = base.partition("@")[0]
            unknown = stream if name in self.metrics else name
            raise UnknownMetric(_unknown_name_text("metric", unknown, self.metrics))
        return self.streams[stream]

    def model(self, name: str) -> "Learning":
        """The model that the reports of this metric train. Raises UnknownMetric without one."""
        _check_name(name)
        if name not in self.models:
            raise UnknownMetric(_unknown_name_text("model", name, self.models))
        return self.models[name]

    @property
    def models(self) -> "dict[str, Learning]":
        """All models, by the metric's name."""
        return {name: metric.model for name, metric in self.metrics.items() if metric.model}

    def promises(self) -> dict[str, Promise]:
        """The promises for every name that the bundle knows, retired ones included."""
        unknown = {name: Promise(digest=digest) for name, digest in self.history.items()}
        active = {name: Promise.of(metric) for name, metric in self.metrics.items()}
        return unknown | dict(self.promised) | active

    def retired_promises(self, metrics: Mapping[str, Metric]) -> dict[str, Promise]:
        """The promises to carry on for names that the next bundle's metrics no longer have."""
        return {
            name: promise
            for name, promise in self.promises().items()
            if name not in metrics and promise.epsilon is not None
        }


def _check_names(metrics: Mapping[str, Metric], history: Mapping[str, str]) -> None:
    for name, metric in metrics.items():
        if name != metric.name or metric.tier:
            raise BadParameter(f'metric "{name}" has another name in its definition')
        if any(
            history.get(stream, own_digest) != own_digest
            for stream, own_digest in digests_of(metric).items()
        ):
            raise BadParameter(
                f'metric "{name}" differs from its definition in the bundle\'s history'
            )
    for name, digest in history.items():
        base, slash, conditions = name.partition("/")
        valid_name = NAME.fullmatch(base) and STREAM.fullmatch(slash + conditions)
        if not (valid_name and isinstance(digest, str) and re.fullmatch(_DIGEST, digest)):
            raise BadParameter("the history is not a table of digests by name")


def _check_promised(
    promised: Mapping[str, Promise], metrics: Mapping[str, Metric], history: Mapping[str, str]
) -> None:
    for name, promise in promised.items():
        if name in metrics or history.get(name) != promise.digest or promise.epsilon is None:
            raise BadParameter(
                "promises name metrics that the history lacks, or that are still in use"
            )


def _check_development(
    metrics: Mapping[str, Metric], keys: Sequence[OpeningKeyPublic], *, development: bool
) -> None:
    if not development and any(metric.epoch == MINUTE for metric in metrics.values()):
        raise BadParameter(f'an epoch of a {MINUTE} is only for development; write epoch = "day"')
    if development and not is_development(keys):
        raise BadParameter(
            "a bundle for development has keys for production; make keys for development: "
            "hubbub keys new --dev"
        )


def _check_keys(metrics: Mapping[str, Metric], keys: Sequence[OpeningKeyPublic]) -> None:
    if len({key.id for key in keys}) != len(keys):
        raise BadParameter("two opening keys have the same id")
    for key, after in pairwise(sorted(keys, key=lambda key: key.start)):
        if after.start < key.end:
            raise BadParameter(f"opening keys {key.id} and {after.id} share an epoch")
    sealed = next((name for name, metric in metrics.items() if metric.kem == X_WING), None)
    lacking = next((key.id for key in keys if not key.x_wing), None)
    if sealed is not None and lacking is not None:
        raise BadParameter(
            f'metric "{sealed}": kem = "{X_WING}", but opening key {lacking} has no X-Wing half; '
            "make it with: hubbub keys x-wing FOLDER"
        )


def _check_roots(roots: str) -> None:
    """Raises BadParameter unless `roots` have the form of certificates in PEM.

    Who signs a bundle reads the certificates whole; the library would take 7 MB of a device.
    """
    try:
        blocks = [from_text("".join(block.split())) for block in re.findall(_CERTIFICATE, roots)]
    except (TypeError, ValueError):
        blocks = []
    if not blocks:
        raise BadParameter("roots does not contain certificates in PEM")


def _check_tokens(metrics: Mapping[str, Metric], streams: Mapping[str, Metric]) -> None:
    from hubbub.bundles.tokens import unfetched, untokened  # noqa: PLC0415 of bundles with tokens

    for name, place, problem in (*untokened(metrics), *unfetched(streams)):
        raise BadParameter(f'metric "{name}": {place} {problem}')


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise UnknownMetric(
            f"a metric is named by a string, as the catalog has it, not by {type(name).__name__}"
        )


def _unknown_name_text(kind: str, name: str, names: Mapping[str, object]) -> str:
    meant = did_you_mean(name, names)
    listing = ", ".join(sorted(names)) or "none"
    return f'{kind} "{name}" is not in the bundle; it has {listing}{meant}'


def part_of_metric(metric: Metric, name: str) -> Metric:
    """The metric under the name of one or several cells. Raises UnknownMetric for other values."""
    rules, conditions = metric.breakdown, conditions_in(name)
    cell = name.partition("/")[0].partition("@")[2]
    if "@" in name and (not cell or cell.count("=") > len(conditions)):
        raise UnknownMetric(
            f'metric "{metric.base_name}": after @ each public field is named once, as in '
            "@os=linux or @os=linux+macos"
        )
    unknown = [
        field
        for field, values in conditions.items()
        if len(set(values)) < len(values) or not set(values) <= rules.get(field, {}).keys()
    ]
    if unknown or ("@" in name and not rules):
        fields = ", ".join(f"{field} ({', '.join(names)})" for field, names in rules.items())
        has = f"its breakdown has {fields}" if rules else "it has no breakdown: leave @... out"
        raise UnknownMetric(f'metric "{metric.base_name}" has no part "{cell[:60]}"; {has}')
    return metric.with_name(name)
