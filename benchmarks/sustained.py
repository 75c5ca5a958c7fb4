"""The whole path for minutes: from Submit over TLS to counted, and what services hold meanwhile."""

import asyncio
import sys
import time
from typing import Any, Final

import grpc
import grpc.aio

from benchmarks.measure import Row
from benchmarks.overload import Measured
from benchmarks.stock import Stock
from hubbub.cli.commands.demo import close_epochs
from tests.support.law_terms import total_counts

_SUBMISSION: Final = 500
_DEVICES: Final = 8
_SUBMIT: Final = "/hubbub.wire.v1.Shuffler/Submit"


class Devices:
    """Submit from a stock, as fast as it is taken; wait when told to."""

    def __init__(self, run: Measured, stock: Stock, seconds: float) -> None:
        self._run, self._stock, self._seconds = run, stock, seconds
        self._places = iter(range(0, len(stock), _SUBMISSION))
        self.began = time.perf_counter()
        self.sent = 0

    async def submit(self) -> None:
        """Until the time is over, or the stock is."""
        credentials = grpc.ssl_channel_credentials((self._run.bundle.roots or "").encode())
        async with grpc.aio.secure_channel(self._run.bundle.shuffler, credentials) as channel:
            await asyncio.gather(*(self._device(channel) for _ in range(_DEVICES)))

    async def _device(self, channel: grpc.aio.Channel) -> None:
        submit: Any = channel.unary_unary(_SUBMIT)
        for place in self._places:
            request = self._stock.submission(place, _SUBMISSION)
            while (hint := await _refusal_delay(submit, request)) is not None:
                await asyncio.sleep(min(hint, 0.2))
            self.sent += _SUBMISSION
            if time.perf_counter() - self.began > self._seconds:
                return


async def _refusal_delay(submit: Any, request: bytes) -> float | None:
    """How long the shuffler says to wait; None once it has taken the reports."""
    try:
        await submit(request, timeout=60)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise
        return int(dict(error.trailing_metadata() or ())["grpc-retry-pushback-ms"]) / 1000
    return None


async def sustained(run: Measured, stock: Stock, limit: float, seconds: float) -> list[Row]:
    """From Submit to counted over TLS, as fast as it is taken; services and Redis on two cores."""
    devices = Devices(run, stock, seconds)
    submitting = asyncio.create_task(devices.submit())
    sizes: list[dict[str, int]] = []
    counts: list[tuple[float, int]] = []
    while not submitting.done():
        await asyncio.sleep(1)
        sizes.append(run.resident_bytes())
        counts.append((time.perf_counter(), await asyncio.to_thread(_counted, run)))
        if sys.stderr.isatty():
            print(f"\r\033[K{counts[-1][1]:,} counted", end="", file=sys.stderr)
    await submitting
    await asyncio.to_thread(close_epochs, run.shuffler_redis)
    deadline = time.monotonic() + 120
    while await asyncio.to_thread(_counted, run) != devices.sent:
        if time.monotonic() > deadline:
            raise AssertionError(f"{devices.sent} were acknowledged, and it does not drain")
        await asyncio.sleep(0.2)
    # Between two looks, past the start of the opening processes.
    (first, before), (last, after) = counts[min(4, len(counts) - 2)], counts[-1]
    counted = (after - before) / (last - first)
    took = last - devices.began
    rows = [
        Row(
            f"the whole path, sealed to counted, {seconds:.0f} s on 2 cores",
            f"{counted:,.0f}/s ({after:,} reports in {took:.0f} s)",
            f"library open x 2: {limit:,.0f}/s",
            counted / limit,
            ">= .6",
            more=True,
        )
    ]
    for name in ("shuffler", "aggregator"):
        early = max(size[name] for size in sizes[len(sizes) // 5 : len(sizes) // 2])
        late = max(size[name] for size in sizes[len(sizes) // 2 :])
        rows.append(
            Row(
                f"the whole path, memory of the {name}",
                f"{late / 1e6:.0f} MB in the second half",
                f"{early / 1e6:.0f} MB in the first, past its start",
                late / early,
                "<= 1.05",
            )
        )
    return rows


def _counted(run: Measured) -> int:
    return total_counts(run.endpoints)["counted"]
