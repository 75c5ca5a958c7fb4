"""The stream table: length, minimum batch and times of each stream, all that the shuffler knows.

For streams with dummies it also has their number or its distribution, the number of values, and
the public keys.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from hubbub.conservation import Window
from hubbub.epochs import begins, epoch_date
from hubbub.errors import BadParameter
from hubbub.errors.message_words import wrong_place
from hubbub.sealing import hpke
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason

# Fields of a stream.
_RANGES: Final = {
    "sealed_bytes": (1, 1 << 20),
    "epoch_seconds": (60, 366 * 86_400),
    "grace_seconds": (1, 366 * 86_400),
    "dummies": (0, 1_000_000),
    "values": (0, 1 << 24),
    "tokens": (0, 1000),
}
_LAWS: Final = ("noise", "value_noise", "sum_noise")
_MIXES: Final = ("pool", "epoch", "rolling")
_LONGEST_NAME: Final = 256
# The least batch is also the catalog's limit: fewer reports hide nobody.
_FEWEST, _MOST = 10, 1_000_000
# A device's clock may be this far ahead of ours.
_AHEAD_SECONDS: Final = 600
_REMEDY: Final = "make it with: hubbub catalog build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One stream: the length of its reports, and when and how many of them may leave.

    `mix` is "pool": random parts as they come, with a reserve; "epoch": the whole epoch as one
    crowd when it is over; or "rolling": everything as one crowd whenever the minimum has gathered.
    `tokens` is how many an account gets for an epoch; 0 if reports need none. `dummies` go along
    with every crowd, each naming one of `values` values, sealed by `kem`. `noise` is the
    distribution of the number of further dummies, which hides the number of reports; `value_noise`
    that of dummies for each value, and `sum_noise` that of their sum; None for no such dummies.
    `fewest` is the lower limit of min_batch: a development installation accepts a single report.
    """

    sealed_bytes: int
    min_batch: int
    epoch_seconds: int
    grace_seconds: int
    mix: str = "pool"
    dummies: int = 0
    noise: CountNoise | None = None
    value_noise: CountNoise | None = None
    sum_noise: CountNoise | None = None
    values: int = 0
    kem: hpke.Kem = hpke.X25519
    tokens: int = 0
    fewest: InitVar[int] = _FEWEST

    def __post_init__(self, fewest: int) -> None:
        for name, (low, high) in {**_RANGES, "min_batch": (fewest, _MOST)}.items():
            number = getattr(self, name)
            if type(number) is not int or not low <= number <= high:
                raise ValueError(f"{name} {number!a} is not a whole number in [{low}, {high}]")
        if self.mix not in _MIXES:
            raise ValueError(f"mix {self.mix!a} is not one of {', '.join(_MIXES)}")
        if self.kem not in hpke.KEMS:
            kems = " or ".join(hpke.KEMS)
            raise ValueError(f"kem {self.kem!a} is unknown: use {kems}, or upgrade hubbub")
        if self.is_padded and self.mix == "pool":
            raise ValueError('a stream with dummies must not have mix "pool"')
        if self.noise and (self.mix != "epoch" or self.min_batch <= self.noise.most):
            raise ValueError('noise needs mix "epoch", and a min_batch above the most dummies')
        if self.value_noise and self.mix != "epoch":
            raise ValueError('value_noise needs mix "epoch"')
        if self.sum_noise and not self.value_noise:
            raise ValueError("sum_noise needs value_noise")
        max_values = 256 ** (self.sealed_bytes - hpke.SEAL_BYTES[self.kem])
        if self.is_padded and not 2 <= self.values <= max_values:  # noqa: PLR2004 two at least
            raise ValueError(
                f"values {self.values} is outside [2, {max_values}], which its reports distinguish"
            )

    @property
    def is_padded(self) -> bool:
        """Whether its crowds contain dummies."""
        return bool(self.dummies or self.is_noisy)

    @property
    def is_noisy(self) -> bool:
        """Whether the number of some of its dummies is random and secret."""
        return bool(self.noise or self.value_noise)

    @property
    def value_law(self) -> ValueNoise | None:
        """The law of the numbers of dummies of each value; None for none."""
        if self.value_noise is None:
            return None
        return ValueNoise(self.value_noise, self.values, self.sum_noise)

    @property
    def expected_named(self) -> int:
        """Mean number of dummies in a crowd that name a given value, over all values."""
        return self.value_law.expected if self.value_law else 0

    @property
    def expected_noise(self) -> int:
        """Mean number of all dummies of random number in a crowd."""
        return self.expected_named + (self.noise.reach if self.noise else 0)

    @property
    def expected_dummies(self) -> int:
        """Mean number of all dummies in a crowd, which is what others are told."""
        return self.dummies + self.expected_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyPeriod:
    """A key and the epochs it is for; `public` and `x_wing` are empty in tables without dummies."""

    id: int
    start: int
    end: int
    public: str = ""
    x_wing: str = ""
    keys: Mapping[hpke.Kem, hpke.PublicKey] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not all(type(n) is int for n in (self.id, self.start, self.end)):
            raise ValueError("a key's period needs whole numbers")
        if not (0 <= self.id < 2**32 and self.start < self.end):
            raise ValueError(
                "a key's id must be in [0, 2**32), and its period must end after it starts"
            )
        keys: dict[hpke.Kem, hpke.PublicKey] = {}
        if self.public:
            keys[hpke.X25519] = X25519PublicKey.from_public_bytes(_bytes(self.public))
        if self.x_wing:
            keys[hpke.X_WING] = hpke.x_wing_public(_bytes(self.x_wing))
        for key in keys.values():
            hpke.seal(b"", key, b"")  # refuses a key that protects nothing
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True, slots=True)
class StreamTable:
    """All streams by name, and the key of every epoch.

    `development` marks an installation whose settings protect nobody.
    """

    streams: Mapping[str, Stream]
    keys: tuple[_KeyPeriod, ...]
    development: bool = False

    def refuse_elsewhere(self, *, development: bool, path: Path) -> None:
        """Raises BadParameter if table and shuffler disagree about being in development."""
        if self.development is not development:
            raise BadParameter(f"{path}: {wrong_place(development=development)}")

    @property
    def sizes(self) -> dict[str, int]:
        """Length of a report of each stream, in bytes."""
        return {name: stream.sealed_bytes for name, stream in self.streams.items()}

    def check_follows(self, former: "StreamTable") -> None:
        """Raises BadParameter if a stream changed in what the reports of a batch have in common."""
        for name, stream in self.streams.items():
            before = former.streams.get(name)
            if before and _shared_fields(before) != _shared_fields(stream):
                raise BadParameter(
                    f"stream {name!a} has another length, epoch, mix or number of dummies than "
                    "before: its reports could not be mixed; give what changed a new name in "
                    "the catalog"
                )

    @property
    def keys_until(self) -> int:
        """The second since 1970 at which the last key's period ends."""
        return max(key.end for key in self.keys)

    def refusal(
        self, report: SealedReport, earliest: float, latest: float | None = None
    ) -> "Reason.ValueType | None":
        """Why a report cannot be accepted at any moment between these two; None if it may be."""
        stream = self.streams.get(report.stream)
        if stream is None:
            return Reason.REASON_UNKNOWN_STREAM
        if len(report.sealed) != stream.sealed_bytes:
            return Reason.REASON_WRONG_LENGTH
        if report.key_id != self.key_id(Window(report.stream, report.epoch)):
            return Reason.REASON_WRONG_KEY  # PRIVACY: a unique key id would mark its sender
        if begins(report.epoch, stream.epoch_seconds) > (latest or earliest) + _AHEAD_SECONDS:
            return Reason.REASON_NOT_YET
        if self.is_over(Window(report.stream, report.epoch), earliest):
            return Reason.REASON_EXPIRED
        return None

    def is_over(self, window: Window, now: float) -> bool:
        """Whether a window's epoch and grace are over, or its stream is no longer known."""
        stream = self.streams.get(window.stream)
        if stream is None:
            return True
        return now >= begins(window.epoch + 1, stream.epoch_seconds) + stream.grace_seconds

    def date_of(self, window: Window) -> str | None:
        """A window's epoch as a readable date; None if its stream is unknown."""
        stream = self.streams.get(window.stream)
        return epoch_date(window.epoch, stream.epoch_seconds) if stream else None

    def key_id(self, window: Window) -> int | None:
        """The key id that all reports of this window must have; None if there is no key."""
        period = self._period(window)
        return None if period is None else period.id

    def public_key(self, window: Window) -> hpke.PublicKey | None:
        """The key to seal this window's dummies with; None in a table without dummies."""
        period = self._period(window)
        return None if period is None else period.keys.get(self.streams[window.stream].kem)

    def _period(self, window: Window) -> _KeyPeriod | None:
        start = begins(window.epoch, self.streams[window.stream].epoch_seconds)
        return next((key for key in self.keys if key.start <= start < key.end), None)


def read_stream_table(path: Path) -> StreamTable:
    """Reads a stream table in JSON, as `hubbub catalog build` makes it.

    Raises BadParameter if it cannot be read, or is not a stream table.
    """
    try:
        document = json.loads(path.read_bytes())
        development = document.get("development", False) is True
        fewest = 1 if development else _FEWEST
        entries = document["streams"].items()
        streams = {name: _stream(path, name, entry, fewest) for name, entry in entries}
        keys = tuple(_key(path, fields) for fields in document["keys"])
    except OSError as error:
        raise BadParameter(f"{path}: cannot be read: {error.strerror}; {_REMEDY}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadParameter(f"{path}: not a stream table; {_REMEDY}") from error
    padded = {stream.kem: name for name, stream in streams.items() if stream.is_padded}
    for key in keys:
        for kem in padded.keys() - key.keys.keys():
            raise BadParameter(
                f"{path}: stream {padded[kem]!a} has dummies, but key {key.id} has no public half "
                f"to seal them with; {_REMEDY}"
            )
    return StreamTable(streams, keys, development)


def _shared_fields(stream: Stream) -> tuple[int | str | CountNoise | ValueNoise | None, ...]:
    """The fields that all reports of a stream in one batch must share."""
    padding = (stream.dummies, stream.noise, stream.value_law, stream.values, stream.kem)
    return stream.sealed_bytes, stream.epoch_seconds, stream.mix, *padding


def _key(path: Path, fields: Mapping[str, Any]) -> _KeyPeriod:
    try:
        return _KeyPeriod(**fields)
    except BadParameter as error:
        raise BadParameter(f"{path}: key {fields['id']!a}: {error}") from error


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _stream(path: Path, name: str, fields: Mapping[str, Any], fewest: int) -> Stream:
    if not 0 < len(name) <= _LONGEST_NAME:
        raise ValueError(f"a stream's name must have 1 to {_LONGEST_NAME} characters")
    try:
        noise_laws = {law: CountNoise(*fields[law]) for law in _LAWS if law in fields}
        return Stream(**{**fields, **noise_laws}, fewest=fewest)
    except ValueError as error:
        raise BadParameter(f"{path}: stream {name!a}: {error}; {_REMEDY}") from error
