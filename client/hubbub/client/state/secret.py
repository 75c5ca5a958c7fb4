"""The device's secret, and the permanent randomness derived from it."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from hubbub.mechanisms import BitSource, KeyedBits, Probability

SECRET_BYTES: Final = 32
_PURPOSES: Final = 256


class DeviceMemo:
    """A device's permanent randomness for one metric; only the secret is stored.

    HMAC-SHA256 under the secret separates metrics and purposes; values enter only hashed. Recent
    answers are cached in memory, so that an unchanged value needs no more hashing. Not safe between
    threads.
    """

    __slots__ = ("_answers", "_metric", "_secret", "_tags")

    def __init__(self, secret: bytes, metric: str) -> None:
        self._secret = secret
        self._metric = metric.encode()
        self._answers: OrderedDict[bytes, list[_Answer]] = OrderedDict()
        self._tags: OrderedDict[bytes, str] = OrderedDict()

    def coins(self, purpose: bytes, /) -> BitSource:
        """Returns the randomness for a purpose, the same for as long as the secret exists."""
        answers = self._answers.get(purpose)
        if answers is None:
            answers = self._answers[purpose] = []
            if len(self._answers) > _PURPOSES:
                self._answers.popitem(last=False)
        return _Remembered(answers, lambda: KeyedBits(self._key(b"coins", purpose)))

    def tag(self, permanent_key: bytes) -> str:
        """Returns the name of a permanent response that only this device can compute."""
        tag = self._tags.get(permanent_key)
        if tag is None:
            tag = self._tags[permanent_key] = self._key(b"tag", permanent_key).hex()[:16]
            if len(self._tags) > _PURPOSES:
                self._tags.popitem(last=False)
        return tag

    def _key(self, use: bytes, purpose: bytes) -> bytes:
        import hashlib  # noqa: PLC0415 as in hubbub.sealing.hpke
        import hmac  # noqa: PLC0415 as in hubbub.sealing.hpke

        # The purpose is hashed so that parts of any content cannot run into each other.
        parts = (b"hubbub/1", use, self._metric, hashlib.sha256(purpose).digest())
        return hmac.digest(self._secret, b"|".join(parts), "sha256")


_Answer = tuple[str, tuple[Any, ...], Any]
"""A question, what it was asked with, and what it was answered."""


class _Remembered:
    """A source that returns cached answers in order, and computes further ones by the key."""

    __slots__ = ("_answers", "_keyed", "_make", "_next")

    def __init__(self, answers: list[_Answer], make: Callable[[], KeyedBits]) -> None:
        self._answers = answers
        self._make = make
        self._next = 0
        self._keyed: KeyedBits | None = None

    def chance(self, probability: Probability, /) -> bool:
        return bool(self._ask("chance", probability))

    def below(self, limit: int, /) -> int:
        return int(self._ask("below", limit))

    def mask(self, probability: Probability, width: int, /) -> int:
        return int(self._ask("mask", probability, width))

    def _ask(self, question: str, *arguments: Any) -> Any:
        place = self._next
        self._next += 1
        if place < len(self._answers):
            return self._answers[place][2]
        if self._keyed is None:
            self._keyed = self._make()
            for method, before, _ in self._answers:  # advance the coins past the cached answers
                getattr(self._keyed, method)(*before)
        answer = getattr(self._keyed, question)(*arguments)
        self._answers.append((question, arguments, answer))
        return answer
