"""Watching reports as they come, each with what it could have meant; in development alone."""

from collections.abc import Sequence
from typing import Final

from hubbub.aggregator.ingest.arrivals import Arrival
from hubbub.aggregator.query.answers import Arrived, Meaning
from hubbub.aggregator.query.overview import iso_time
from hubbub.catalog import EPOCH_SECONDS, Bundle
from hubbub.catalog.meanings import meanings_of
from hubbub.conservation import epoch_date

_LIKELIEST: Final = 5


def arrived(bundle: Bundle, arrivals: Sequence[Arrival]) -> list[Arrived]:
    """Those whose metric this bundle has, in its words."""
    return [_told(bundle, one) for one in arrivals if one.window.stream in bundle.streams]


def _told(bundle: Bundle, one: Arrival) -> Arrived:
    stream = bundle.streams[one.window.stream]
    meant = meanings_of(stream, one.payload, stream.candidates)
    return Arrived(
        number=one.number,
        at=iso_time(int(one.at)),
        stream=stream.name,
        date=epoch_date(one.window.epoch, EPOCH_SECONDS[stream.epoch]),
        epsilon=stream.report_loss,
        payload=one.payload.hex(),
        meanings=[Meaning(value, chance) for value, chance in meant[:_LIKELIEST]],
        others=max(0, len(meant) - _LIKELIEST),
    )
