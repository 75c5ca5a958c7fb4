"""Selects epochs by text: one grammar for every interface.

last:
  N            the newest N epochs, counted back from the current one
  12h 7d 4w    those that began within this many hours, days, weeks up to now
epochs:
  newest       the newest with a report; the default
  closed       the newest with a report that is closed
  all          every epoch with a report
  A            one, by its day (2026-11-22, today, yesterday), its month (2026-11), its moment
               (2026-11-22T14:00) or its number
  A..B         from A through B; a day or a month stands for all of its epochs
  A,B,C..D     several
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from hubbub.catalog import closing_time, epoch_at, epoch_start
from hubbub.errors import BadParameter
from hubbub.errors.message_words import absent_date, did_you_mean

_HOURS: Final = {"h": 1, "d": 24, "w": 168}
_LAST: Final = re.compile(r"([0-9]{1,60})([hdw]?)")
_MAX_LAST: Final = 999_999
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}")
_DAYS_AGO: Final = {"today": 0, "yesterday": 1}
_WORDS: Final = ("newest", "closed", "all", *_DAYS_AGO)
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class EpochRange:
    """The requested epochs, in this grammar; by default the newest reported."""

    last: str = ""
    epochs: str = ""


NEWEST: Final = EpochRange()


def select_epochs(
    chosen: EpochRange, all_epochs: Sequence[int], length: str, now: float, *, exact: bool = False
) -> list[int]:
    """The chosen epochs among `all_epochs`, which have reports, ascending.

    `length` is the epoch's length in the catalog, `now` is in seconds since 1970; with `exact`, a
    part without reports stands for its first epoch. Raises BadParameter for both `last` and
    `epochs`, or for an invalid text; the error lists the valid forms.
    """
    if chosen.last and chosen.epochs:
        raise BadParameter('give "epochs" or "last", not both')
    if chosen.last:
        oldest, newest = _epochs_until_now(chosen.last, length, now)
        return [epoch for epoch in all_epochs if oldest <= epoch <= newest]
    match chosen.epochs.strip():
        case "" | "newest":
            return list(all_epochs[-1:])
        case "closed":
            return [epoch for epoch in all_epochs if closing_time(epoch, length) <= now][-1:]
        case "all":
            return list(all_epochs)
        case text:
            ranges = [_range(part, length, now) for part in text.split(",")]
            result = {epoch for epoch in all_epochs if any(a <= epoch <= b for a, b in ranges)}
            if exact:
                result |= {a for a, b in ranges if not any(a <= epoch <= b for epoch in all_epochs)}
            return sorted(result)


def _epochs_until_now(text: str, length: str, now: float) -> tuple[int, int]:
    """The first and the last epoch of a range that is counted back from now."""
    match = _LAST.fullmatch(text.strip())
    if not match:
        raise BadParameter(
            f'last "{_shorten(text)}" is not a number of epochs, nor of hours, days or weeks: '
            "write 7, 12h, 7d or 4w"
        )
    number, unit = int(match[1]), match[2]
    if not 1 <= number <= _MAX_LAST:
        raise BadParameter(
            f'last "{_shorten(text)}" is outside [1, {_MAX_LAST:,}]: write 7, 12h, 7d or 4w, or '
            "request epochs all"
        )
    newest = epoch_at(now, length)
    if not unit:
        return newest - number + 1, newest
    # The epochs that began within that time, but always at least one.
    return min(epoch_at(max(now - 3600 * number * _HOURS[unit], 0), length) + 1, newest), newest


def _range(text: str, length: str, now: float) -> tuple[int, int]:
    begin, dots, end = text.strip().partition("..")
    if dots and not (begin and end):
        raise BadParameter(
            f'epochs "{_shorten(text)}" lack an end: write both, as in 2026-11-01..2026-11-07'
        )
    start, stop = _named_ends(begin, length, now)
    if dots:
        stop = _named_ends(end, length, now)[1]
    if start > stop:
        raise BadParameter(f'epochs "{_shorten(text)}" end before they begin: swap the ends')
    return start, stop


def _named_ends(text: str, length: str, now: float) -> tuple[int, int]:
    """The first and the last epoch that one side names."""
    text = text.strip()
    if text in _DAYS_AGO:
        day = datetime.fromtimestamp(now, UTC) - timedelta(days=_DAYS_AGO[text])
        text = f"{day:%Y-%m-%d}"
    if text in _WORDS:
        raise BadParameter(f"epochs {text} cannot be combined with other epochs: leave them out")
    if _NUMBER.fullmatch(text):
        return int(text), int(text)
    is_month = _MONTH.fullmatch(text) is not None
    dated = text if _MONTH.match(text) else ""  # Python also reads 2026-W48, as its Monday
    try:
        begin = datetime.fromisoformat(f"{text}-01" if is_month else dated)
        begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
        start = begin.timestamp()
    except (ValueError, OverflowError):
        if problem := absent_date(text):
            raise BadParameter(f"epochs: {problem}") from None
        raise BadParameter(
            f'epochs "{_shorten(text)}": write newest, closed, all, today, yesterday, 2026-11-22, '
            "2026-11, 2026-11-22T14:00, a number, or a range such as 2026-11-01..2026-11-07"
            f"{did_you_mean(text, _WORDS)}"
        ) from None
    stop = start + _DAY_SECONDS - 1 if _DAY.fullmatch(text) else start
    if is_month:
        stop = epoch_start(epoch_at(start, "month") + 1, "month") - 1
    return epoch_at(max(start, 0), length), epoch_at(max(stop, 0), length)


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "..."  # noqa: PLR2004 a line's worth
