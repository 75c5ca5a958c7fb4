"""A shuffler that looks: all that it sees of a device, and a classifier of that."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from hubbub.bundles import Bundle
from hubbub.client import Client, MemoryState
from hubbub.client.delivery import background, waits
from hubbub.client.state.secret import SECRET_BYTES
from hubbub.client.testing import FakeClock, FakeShuffler
from tests.support.bundles import DAY
from tests.support.waiting import HANG_SECONDS

HOUR = 3600

Seen = dict[str, float]
Secret = Callable[[Client, random.Random], None]
"""What is done on some devices, at a moment of their day: an event reported, a preference said."""


def _observed(bundle: Bundle, secret: Secret | None, rng: random.Random) -> Seen:
    """All that a shuffler sees of one device in its day and the next: when, how often, how much.

    Its background thread is stepped here, at the moments when it would be woken.
    """
    clock = FakeClock(bundle.keys[0].start + 20 * DAY + 8 * HOUR)
    # Its secret is the run's own: a device's sampling is seen, and would fall otherwise each time.
    state, shuffler = MemoryState(rng.randbytes(SECRET_BYTES)), FakeShuffler()
    midnight = bundle.keys[0].start + 21 * DAY
    ends = midnight - rng.uniform(1, 15) * HOUR if rng.randrange(2) else None
    happens = clock.now() + rng.uniform(0, 6) * HOUR if secret else None
    times: list[float] = []

    def lives(until: float) -> None:
        client = Client(bundle, state, shuffler, hold_seconds=3600.0, clock=clock)
        thread = client._background
        assert thread is not None
        thread.end()  # what it does is done here
        due: float | None = thread._step(None)
        while clock.now() < until:
            idle = thread._idle_seconds(due)
            wakes = clock.now() + (DAY if idle is None else idle + 0.001)
            nonlocal happens
            if happens is not None and happens < min(wakes, until):
                clock.advance(max(0.0, happens - clock.now()))
                if secret:
                    secret(client, rng)
                happens = None
            else:
                clock.advance(max(0.0, min(wakes, until) - clock.now()))
            before = len(shuffler.submissions)
            due = thread._step(due)
            times.extend([clock.now()] * (len(shuffler.submissions) - before))
        before = len(shuffler.submissions)
        client.close(HANG_SECONDS)
        times.extend([clock.now()] * (len(shuffler.submissions) - before))

    if ends is not None:
        lives(max(ends, clock.now() + 7 * HOUR))
        clock.advance(midnight - clock.now() + rng.uniform(0, 10) * HOUR)
    lives(midnight + 20 * HOUR)
    reports = shuffler.reports()
    streams = Counter(f"of {report.stream}" for report in reports)
    return {
        **dict.fromkeys((f"of {stream}" for stream in bundle.streams), 0),
        **streams,
        "reports": len(reports),
        "calls": len(shuffler.submissions),
        "bytes": sum(len(report.sealed) for report in reports),
        "first": min(times, default=0.0),
        "last": max(times, default=0.0),
        "epoch": min((report.epoch for report in reports), default=0),
    }


def _best_stump(observations: list[Seen], truth: list[bool]) -> Callable[[Seen], bool]:
    """The threshold on one thing seen that is right most often of these devices."""
    best: tuple[int, str, float, bool] = (-1, "", 0.0, False)
    for name in observations[0]:
        values = sorted({observation[name] for observation in observations})
        for threshold in values[:: max(1, len(values) // 60)]:
            hits = sum(
                (observation[name] >= threshold) == t
                for observation, t in zip(observations, truth, strict=True)
            )
            for right, above in ((hits, True), (len(observations) - hits, False)):
                best = max(best, (right, name, threshold, above))
    _, name, threshold, above = best
    return lambda observation: (observation[name] >= threshold) is above


def accuracy(bundle: Bundle, devices: int, secret: Secret) -> float:
    """How often a classifier that learned of half of the devices is right of the others.

    secret: done on half of all, by a coin.
    """
    rng, waiting = random.Random(1), random.Random(2)
    truth = [bool(rng.randrange(2)) for _ in range(devices)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (waits, background):  # so that a run is like any other
            patch.setattr(module, "uniform", waiting.uniform)
        observations = [_observed(bundle, secret if marked else None, rng) for marked in truth]
    half = devices // 2
    guess = _best_stump(observations[:half], truth[:half])
    right = sum(
        guess(observation) == t
        for observation, t in zip(observations[half:], truth[half:], strict=True)
    )
    return right / (devices - half)
