"""Whatever a program takes for a number: it is the metric's, or it is none, and never a fault."""

import math
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.analysis.families.draw_totals import one_hot_chances
from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.testing import FakeShuffler
from hubbub.errors import ValueOutOfDomain
from hubbub.signing.testing import make_bundle
from hubbub.simulation.people_file import _MAX_NUMBERS
from tests.support.catalogs import catalog_toml, metric_toml

NUMBER = {"domain": "number", "low": 0.0, "high": 100.0}
MECHANISMS = {
    "mean.one_bit": "",
    "mean.piecewise": "",
    "mean.table": "",
    "buckets": "buckets = 8\nsampled = 2",
    "wave": "buckets = 8",
    "haar": "buckets = 8",
}


class Level(IntEnum):
    LOW = 1


NUMBERS = (
    0,
    1,
    100,
    0.0,
    -0.0,
    1e-320,
    99.9,
    10**2,
    Level.LOW,
    np.float64(7.5),
    np.int64(1),
    np.float32(1),
    Decimal(1),
    Fraction(1, 2),
)
NONE: tuple[Any, ...] = (
    10**400,
    -(10**400),
    2**1024,
    10**5000,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    -1e-9,
    100.00000001,
    True,
    False,
    None,
    "1",
    b"1",
    1j,
    [1],
    (),
    {},
    object(),
    Decimal("sNaN"),
    np.bool_(1),
    np.float64("nan"),
    np.float32("inf"),
    np.timedelta64(1, "s"),
    np.timedelta64(1_500_000_000, "ns"),
    np.datetime64("2026-11-25"),
    np.array([1.0, 2.0]),
)


@pytest.fixture(scope="module")
def client_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("catalog") / "metrics.toml"
    path.write_text(
        catalog_toml(
            *(
                metric_toml(
                    mechanism.replace(".", "_"),
                    more,
                    mechanism=mechanism,
                    epsilon=1.0,
                    epoch="hour",
                    min_batch=20,
                    reports_per_epoch=1000,
                    lifetime_epsilon=1000.0,
                    **NUMBER,
                )
                for mechanism, more in MECHANISMS.items()
            )
        )
    )
    bundle = make_bundle(path).bundle

    def make(*, strict: bool) -> Client:
        return Client(bundle, MemoryState(), FakeShuffler(), hold_seconds=None, strict=strict)

    return make


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_invalid_number_is_no_value(mechanism: str, client_of: Any) -> None:
    name = mechanism.replace(".", "_")
    strict, lenient = client_of(strict=True), client_of(strict=False)
    for value in NONE:
        with pytest.raises(ValueOutOfDomain) as caught:
            strict.report(name, value)
        assert "10000000" not in str(caught.value), "the value is not told"
        assert lenient.report(name, value) is Outcome.NOT_A_VALUE
    for value in NUMBERS:
        assert strict.report(name, value) is Outcome.QUEUED


def test_the_chances_of_all_numbers_of_a_rehearsal_stay_in_memory() -> None:
    """One number more than the cache holds, and every run works out all of them again."""
    assert one_hot_chances.cache_parameters()["maxsize"] > _MAX_NUMBERS
