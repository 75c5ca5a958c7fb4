"""Epochs by their dates, as people say them and as every face may be asked for them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from hubbub.epochs import MONTH_SECONDS, begins

_DAY_SECONDS: Final = 86_400
_LATEST: Final = 253_402_300_799
"""The last second that calendars have: what is later is shown as it."""


def epoch_date(epoch: int, seconds: int) -> str:
    """When an epoch of such a span begins, in UTC: 2026-11-22, 2026-11-22T14:00, or 2026-11."""
    first = datetime.fromtimestamp(min(begins(epoch, seconds), _LATEST), UTC)
    if seconds == MONTH_SECONDS:
        return f"{first:%Y-%m}"
    return f"{first:%Y-%m-%d}" if seconds % _DAY_SECONDS == 0 else f"{first:%Y-%m-%dT%H:%M}"


def minute(seconds: float) -> str:
    """A moment, in seconds since 1970, to the minute before it: 2026-11-22 14:00 UTC."""
    return f"{datetime.fromtimestamp(min(seconds, _LATEST), UTC):%Y-%m-%d %H:%M} UTC"


def epoch_dates(epochs: Sequence[int], seconds: int) -> str:
    """Several, ascending, as "2026-11-01..2026-11-07, 2026-11-09"."""
    spans: list[list[int]] = []
    for epoch in epochs:
        if spans and epoch == spans[-1][-1] + 1:
            spans[-1][1:] = [epoch]
        else:
            spans.append([epoch])
    return ", ".join("..".join(epoch_date(epoch, seconds) for epoch in span) for span in spans)
