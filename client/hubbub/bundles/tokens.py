"""Tokens against fake reports: `tokens` in a catalog, and the issuer in a bundle.

An issuer that knows accounts gives each as many tokens for a stream and epoch as one device may
send reports; the shuffler refuses reports without a token.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, Self

from hubbub.bundles.encoding import from_text, to_text
from hubbub.errors import BadParameter
from hubbub.errors.address_checks import url_parts
from hubbub.fields import kinds
from hubbub.fields.field import check, setting
from hubbub.fields.frozen import frozen

_ISSUER: Final = re.compile(
    r"https://[!-.0-9;-~]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~-]{1,64}){0,8}"
)
_ON_THIS_MACHINE: Final = re.compile(r"http://(127\.0\.0\.1|localhost):[0-9]{1,5}")
_PUBLIC_BYTES: Final = 32
_MAX_TOKENS: Final = 4_000  # of a question: 34 bytes each, and an issuer reads 1 MiB
_WEIGHS: Final = (
    "cannot be combined with tokens: a faker would skip no epoch, so each account would "
    "count as several people; leave one of them out"
)
_PADDED: Final = (
    "made by devices cannot be combined with tokens: an account has only as many tokens as "
    "reports; let the shuffler make the dummies, or leave one out"
)


def _is_issuer(value: Any) -> bool:
    patterns = (_ISSUER, _ON_THIS_MACHINE)
    if not (isinstance(value, str) and any(pattern.fullmatch(value) for pattern in patterns)):
        return False
    return url_parts(value) is not None


@frozen()
class Tokens:
    """The `tokens` field of a catalog. Raises BadParameter out of range."""

    issuer: str = setting(
        kinds.simple(
            "https://HOST, as devices dial the issuer",
            _is_issuer,
            {"type": "string", "pattern": f"^({_ISSUER.pattern}|{_ON_THIS_MACHINE.pattern})$"},
        ),
        "Address of the issuer of tokens; unencrypted only on this machine.",
        '"https://issuer.example.org:7090"',
    )
    devices: int = setting(
        kinds.integer(1, 100),
        "Number of devices per account that get tokens; an account can send this many "
        "times the reports of one device.",
        "2",
        default=1,
    )

    def __post_init__(self) -> None:
        check(self)


@frozen()
class TokenIssuer:
    """The issuer in a bundle, and its public key. Raises BadParameter for a key of wrong length."""

    terms: Tokens
    public: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.public) != _PUBLIC_BYTES:
            raise BadParameter(f"the token issuer's public key is not {_PUBLIC_BYTES} bytes")

    def words(self) -> dict[str, Any]:
        """The JSON form."""
        devices = {"devices": self.terms.devices} if self.terms.devices > 1 else {}
        return {"issuer": self.terms.issuer, "key": to_text(self.public), **devices}

    @classmethod
    def load(cls, words: Mapping[str, Any]) -> Self:
        """Reads what `words` returned. Raises KeyError, TypeError, ValueError or BadParameter."""
        terms = Tokens(words["issuer"], words.get("devices", 1))
        return cls(terms, from_text(words["key"]))


def untokened(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields what conflicts with `tokens`: metric, field, and what is wrong with it."""
    for name, metric in metrics.items():
        for place, chosen in (
            ("sampling", metric.sampling < 1),
            ("discover", metric.discover),
            ("report_on", metric.report_on),
            ("kind", metric.model),
        ):
            if chosen:
                yield name, place, _WEIGHS
        if metric.crowd and metric.crowd.dummies_each:
            yield name, "dummies", _PADDED


def unfetched(streams: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields, like `untokened`, where a device would request more tokens at once than allowed."""
    for length in sorted({metric.epoch for metric in streams.values()}):
        numbers = {n: m.limits.reports_per_epoch for n, m in streams.items() if m.epoch == length}
        if (total := sum(numbers.values())) > _MAX_TOKENS:
            largest = max(numbers, key=lambda name: numbers[name])
            why = (
                f"makes {total} tokens together with all other metrics of epoch "
                f'"{length}", but a device can request only {_MAX_TOKENS} at once; make '
                "it smaller, or give metrics another epoch"
            )
            yield largest.split("/")[0], "reports_per_epoch", why
