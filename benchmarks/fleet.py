"""A fleet of a million devices, simulated with the SDK's own waits: its peaks, and after an outage.

By hand, with a number of devices: python -m benchmarks.fleet 100000
"""

import heapq
import sys
from collections import Counter
from collections.abc import Iterator
from secrets import SystemRandom
from typing import Final

from benchmarks.measure import Row
from benchmarks.own import own_hubbub
from hubbub.client.delivery.waits import Waits, soon
from hubbub.client.settings import Settings

_DEVICES: Final = 1_000_000
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
_AWAY: Final = (36 * _HOUR, 37 * _HOUR)
_FIRST: Final = 26 * _HOUR  # once those of the first hours have come


def fleet(devices: int = _DEVICES) -> Iterator[Row]:
    """Apps that all start on the hour and stay open, one report a day each; an outage of an hour.

    Two days; calls are counted by the minute.
    """
    with own_hubbub() as run:
        calls, came = _simulate_outage(devices, Waits(run.bundle, Settings().hold_seconds))
    usual = devices / _DAY * _MINUTE
    minutes = range(int(_FIRST / _MINUTE), int(_AWAY[0] / _MINUTE))
    calm = max(calls[minute] for minute in minutes)
    minutes = range(int(_AWAY[1] / _MINUTE), int(2 * _DAY / _MINUTE))
    after = max(calls[minute] for minute in minutes)
    size = f"{devices:,} devices"
    yield Row(
        f"busiest minute of {size} that all report on the hour",
        f"{calm:,} calls",
        f"evenly: {usual:,.0f}",
        calm / usual,
        "<= 1.5",
    )
    yield Row(
        f"busiest minute of {size} after an outage of an hour",
        f"{after:,} calls",
        f"evenly: {usual:,.0f}",
        after / usual,
        "<= 2",
    )
    late = sorted(moment - _AWAY[1] for moment in came)
    half, most = (late[int(share * len(late))] / _HOUR for share in (0.5, 0.99))
    yield Row(
        f"until 99% of the {len(late):,} have called that it left waiting",
        f"{most:.2f} h (half of them: {half:.2f} h)",
        "the outage: 1 h",
        most,
        "<= 2",
    )


def _simulate_outage(devices: int, waits: Waits) -> tuple[Counter[int], list[float]]:
    """Calls per minute, and when those came that the outage had left waiting."""
    chance = SystemRandom()
    calls: Counter[int] = Counter()
    came: list[float] = []
    events: list[tuple[float, int]] = []
    for day in range(2):
        for _ in range(devices):
            report_time = day * _DAY + _HOUR * chance.randrange(24) + abs(chance.gauss(0, 1))
            events.append((report_time + waits.before_sending(left_over=False), 0))
    heapq.heapify(events)
    while events:
        moment, failures = heapq.heappop(events)
        calls[int(moment / _MINUTE)] += 1
        if _AWAY[0] <= moment < _AWAY[1]:
            failures += 1
            again = waits.before_trying_again(failures, soon(failures))
            heapq.heappush(events, (moment + again, failures))
        elif failures:
            came.append(moment)
    return calls, came


if __name__ == "__main__":
    for row in fleet(int(sys.argv[1]) if len(sys.argv) > 1 else _DEVICES):
        print(row)
