"""A metric that asks a part of all devices: a coin of the device's own, for each epoch."""

from collections.abc import Callable
from math import sqrt
from pathlib import Path

import pytest

from hubbub.bundles import read_bundle
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.errors import CatalogInvalid
from tests.conftest import CATALOG
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_of
from tests.support.devices import idle_client
from tests.support.waiting import HANG_SECONDS

Make = Callable[..., Client]
SAMPLED = CATALOG.replace("[metrics.theme]", "[metrics.theme]\nsampling = 0.25")


@pytest.fixture
def client_of(tmp_path: Path) -> Make:
    signed = make_signed(tmp_path, SAMPLED, start=20_000 * DAY)
    assert read_bundle(signed.path).metrics["theme"].sampling == 0.25
    assert read_bundle(signed.path).metrics["crashed"].sampling == 1.0

    def make(day: int = 3, state: MemoryState | None = None) -> Client:
        return idle_client(
            signed.bundle, state, clock=SystemClock(lambda: float((20_000 + day) * DAY))
        )

    return make


@pytest.mark.slow
def test_the_sampled_share_of_devices_takes_part_for_every_value(client_of: Make) -> None:
    """Six standard errors over 800 devices: a false alarm of 2e-9."""
    outcomes = []
    for device in range(800):
        with client_of() as client:
            outcomes.append(client.report("theme", ("dark", "light")[device % 2]))
            assert client.report("crashed", "yes") is Outcome.QUEUED
    assert set(outcomes) == {Outcome.QUEUED, Outcome.NOT_SAMPLED}
    participants = outcomes.count(Outcome.QUEUED)
    assert abs(participants - 200) < 6 * sqrt(800 * 0.25 * 0.75)


def test_a_device_decides_once_an_epoch_and_spends_nothing_if_not(client_of: Make) -> None:
    decided = set()
    state = MemoryState()
    for day in range(60):
        with client_of(day, state) as client:
            first = client.report("theme", "dark")
            again = client.report("theme", "light")
            if first is Outcome.NOT_SAMPLED:
                assert again is Outcome.NOT_SAMPLED
                assert client.waiting == 0
            else:
                assert (first, again) == (Outcome.QUEUED, Outcome.ALREADY_REPORTED)
                assert client.flush(HANG_SECONDS)
            decided.add(first)
    assert decided == {Outcome.QUEUED, Outcome.NOT_SAMPLED}  # both, but for 3 in 10^8


@pytest.mark.parametrize("wrong", ["0", "1.5", "nan", '"some"', "true"])
def test_an_invalid_sampling_chance_is_refused(wrong: str) -> None:
    with pytest.raises(CatalogInvalid, match=r'field "sampling": must be a chance in \[1e-06, 1\]'):
        catalog_of(SAMPLED.replace("sampling = 0.25", f"sampling = {wrong}"))
