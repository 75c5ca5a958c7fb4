"""Bundles for tests of apps: a catalog signed with temporary keys."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.authoring import read_catalog
from hubbub.bundles import Bundle, OpeningKey, open_bundle
from hubbub.catalog import EPOCH_SECONDS, Crowd
from hubbub.catalog.crowds.gaussian_privacy import mu_of_pure
from hubbub.keys.opening_key_files import new_periods
from hubbub.signing.sign_bundle import sign_bundle

_KEY_SECONDS = 4 * EPOCH_SECONDS["week"]


@dataclass(frozen=True, slots=True)
class TestBundle:
    """A bundle signed for a test, its content, and the keys that open reports sealed with it."""

    bundle: Bundle
    signed: bytes = field(repr=False)
    opening: tuple[OpeningKey, ...] = field(repr=False)

    __test__ = False  # it is no test, whatever its name says


class _Alone:
    """An accountant that needs no crowd: the local epsilon is at most the central one."""

    def local_epsilon(self, promise: Crowd, _categories: float, _groups: int = 1) -> float:
        return min(promise.epsilon / promise.epochs, promise.max_local_epsilon)

    def keeps(self, promise: Crowd, _categories: float, epsilon: float, _groups: int = 1) -> bool:
        return epsilon * promise.epochs <= promise.epsilon

    def gaussian(
        self, _promise: Crowd, _categories: float, epsilon: float, _groups: int = 1
    ) -> float:
        return mu_of_pure(epsilon)

    def padded(
        self,
        promise: Crowd,
        _categories: int,
        _dummies: str,
        *,
        noisy: bool = True,
        fixed_sum: bool = False,
    ) -> Crowd:
        del noisy, fixed_sum
        return promise

    def crowd_needed(
        self, _promise: Crowd, _categories: float, _epsilon: float, _groups: int = 1
    ) -> None:
        """None, as if no crowd kept the promise."""


def make_bundle(catalog: str | Path, *, shuffler: str | None = None) -> TestBundle:
    """Signs a catalog (metrics.toml) with temporary keys.

    `shuffler` is HOST:PORT to use instead of the catalog's. Raises CatalogInvalid for a wrong one.
    """
    source = read_catalog(Path(catalog), _Alone())
    opening, public = new_periods(1, int(time.time()) - _KEY_SECONDS, _KEY_SECONDS, periods=14)
    bundle = Bundle(
        metrics=source.metrics,
        keys=tuple(public),
        shuffler=shuffler or source.shuffler,
        roots=None,
        history={name: metric.digest() for name, metric in source.metrics.items()},
        budget=source.budget,
        caps=source.caps,
    )
    signed = sign_bundle(bundle, Ed25519PrivateKey.generate())
    return TestBundle(open_bundle(signed, "app.hubbub"), signed, tuple(opening))
