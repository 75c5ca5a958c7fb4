"""Reports as they arrive in a development installation, with what they may mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hubbub.aggregator.ingest.development_reports import Arrival
from hubbub.aggregator.query.estimating import stated_epsilon
from hubbub.aggregator.query.metric_answer import iso_time
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, Metric
from hubbub.catalog.payload_meanings import meanings_of
from hubbub.epochs import epoch_date

_LIKELIEST: Final = 5


@dataclass(frozen=True, slots=True)
class Meaning:
    """A value and its probability given one report, from equal probabilities."""

    value: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """One report of a development installation, as in a device's ledger.

    Args:
        number: from 1, in the order of arrival.
        at: when it was counted.
        epsilon: of the report, in nats, proven.
        meanings: the likeliest values.
        others: number of further possible values.
    """

    number: int
    at: str
    stream: str
    date: str
    epsilon: float
    payload: str
    meanings: list[Meaning]
    others: int


@dataclass(frozen=True, slots=True)
class Watched:
    """Arriving reports of a development installation; of a production installation none."""

    arrivals: list[Arrived]
    notice: str


def arriving_reports(bundle: Bundle, arrivals: Sequence[Arrival], notice: str) -> Watched:
    """Arrivals of this bundle's streams, in its words."""
    streams = ((bundle.streams.get(arrival.window.stream), arrival) for arrival in arrivals)
    return Watched([_arrival_row(stream, arrival) for stream, arrival in streams if stream], notice)


def _arrival_row(stream: Metric, arrival: Arrival) -> Arrived:
    meant = meanings_of(stream, arrival.payload, stream.candidates)
    return Arrived(
        number=arrival.number,
        at=iso_time(int(arrival.at)),
        stream=stream.name,
        date=epoch_date(arrival.window.epoch, EPOCH_SECONDS[stream.epoch]),
        epsilon=stated_epsilon(stream),
        payload=arrival.payload.hex(),
        meanings=[Meaning(value, chance) for value, chance in meant[:_LIKELIEST]],
        others=max(0, len(meant) - _LIKELIEST),
    )
