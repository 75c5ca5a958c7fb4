"""Clocks: what time it surely is, told from clocks of which any may be wrong."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from hubbub.runtime.clocks import Clocks

pytestmark = pytest.mark.slow

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365 * 86_400.0
START = 20_000 * DAY


class Times:
    """A machine and a Redis whose clocks are set by hand; monotonic time passes for both."""

    def __init__(self) -> None:
        self.passed = 50.0
        self.machine = self.redis = 0.0
        self.clocks = Clocks(lambda: self.right + self.machine, self.beside, lambda: self.passed)
        self.look()

    @property
    def right(self) -> float:
        return START + self.passed

    async def beside(self) -> list[float]:
        return [self.right + self.redis]

    def look(self) -> None:
        asyncio.run(self.clocks.look())

    def go_on(self, seconds: float) -> None:
        """Look every ten seconds meanwhile."""
        for _ in range(int(seconds // 10)):
            self.passed += 10
            self.look()

    def off(self) -> tuple[float, float]:
        """How far the least and the most that it may be are from what it is."""
        return round(self.clocks.earliest() - self.right), round(self.clocks.latest() - self.right)


def _settled(times: Times) -> bool:
    return times.clocks.settled


def test_clocks_that_agree_are_settled_after_an_hour() -> None:
    times = Times()
    assert times.off() == (0, 0)
    assert not _settled(times)
    times.go_on(HOUR)
    assert _settled(times)
    assert times.clocks.apart_seconds == 0


@pytest.mark.parametrize("step", [10 * YEAR, -DAY])
@pytest.mark.parametrize("who", ["machine", "redis"])
def test_the_clock_that_leaves_the_agreed_time_is_the_wrong_one(who: str, step: float) -> None:
    times = Times()
    times.go_on(2 * HOUR)
    setattr(times, who, step)
    times.look()
    assert times.off() == (0, 0)
    assert not _settled(times)
    setattr(times, who, 0.0)
    times.look()
    assert times.off() == (0, 0)
    assert not _settled(times), "for an hour from here on"
    times.go_on(HOUR)
    assert _settled(times)


@pytest.mark.parametrize("step", [10 * YEAR, -DAY])
def test_two_clocks_that_jump_together_are_trusted_after_an_hour(step: float) -> None:
    times = Times()
    times.go_on(2 * HOUR)
    times.machine = times.redis = step
    times.look()
    assert times.off() == (min(step, 0), max(step, 0)), "either may be right"
    times.machine = times.redis = 0.0
    times.go_on(30)
    assert not _settled(times)
    assert times.off() == (min(step, 0), max(step, 0)), "and still"
    times.go_on(HOUR + 60)
    assert _settled(times)
    assert times.off() == (0, 0)


@pytest.mark.parametrize("first", ["machine", "redis"])
def test_a_clock_jump_seen_by_no_single_look_is_not_trusted_sooner(first: str) -> None:
    times = Times()
    times.go_on(2 * HOUR)
    setattr(times, first, YEAR)
    times.look()
    times.machine = times.redis = YEAR
    times.look()
    assert times.off()[0] == 0


def test_a_wrong_machine_clock_beside_a_right_redis_is_undecided() -> None:
    times = Times()
    times.machine = -4.5 * HOUR
    times.clocks = Clocks(lambda: times.right + times.machine, times.beside, lambda: times.passed)
    times.look()
    assert times.off() == (-4.5 * HOUR, 0)
    times.go_on(5 * HOUR)
    assert times.off() == (-4.5 * HOUR, 0), "time alone does not tell which"
    assert not _settled(times)


@pytest.mark.parametrize("drift", [1e-5, -1e-5])
def test_a_slow_drift_is_no_disagreement_of_clocks(drift: float) -> None:
    times = Times()
    for _ in range(20):
        times.go_on(HOUR / 4)
        times.machine += drift * HOUR / 4
        times.look()
    assert _settled(times)


def test_differing_clocks_are_logged_once_per_occurrence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times = Times()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            times.machine = DAY
            times.go_on(60)
            times.machine = 0.0
            times.go_on(2 * HOUR)
    assert caplog.text.count("the clocks are 86400 s apart") == 2


def test_the_clock_of_a_silent_redis_is_assumed_to_run_on() -> None:
    from hubbub.errors import StoreUnavailable

    times = Times()
    answers: list[Callable[[], list[float]]] = [lambda: [times.right]]

    async def beside() -> list[float]:
        return answers[-1]()

    def away() -> list[float]:
        raise StoreUnavailable("away")

    clocks = Clocks(lambda: times.right + times.machine, beside, lambda: times.passed)
    asyncio.run(clocks.look())
    answers.append(away)
    with pytest.raises(StoreUnavailable):
        asyncio.run(clocks.look())
    times.passed += 100
    times.machine = DAY
    assert round(clocks.latest() - times.right) == 0


def test_a_watch_of_clocks_restarts_after_a_long_pause() -> None:
    times = Times()
    times.go_on(HOUR)
    times.passed += 2 * HOUR
    assert not _settled(times)
    times.go_on(HOUR)
    assert _settled(times)
