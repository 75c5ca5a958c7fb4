"""The shuffler's terms of the conservation law as its faces show them: of a stream what has left.

PRIVACY: a count of one stream that grows as a report arrives links that report to whoever connected
    at that moment. So outside development no face shows what waits in a pool of one stream: its
    terms change when a batch leaves, and never by fewer reports than a minimum batch.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from hubbub.conservation import Window, sum_terms
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import Stream

WindowTerms = Mapping[Window, Mapping[str, int]]


class ShownTerms(NamedTuple):
    """windows: terms per window. total: over all streams, as of now; empty if `windows` add up."""

    windows: WindowTerms
    total: Mapping[str, int]


class ShownCounts:
    """Reads the terms from the pool. Methods raise StoreUnavailable.

    streams: the stream table's, as of now. development: every term is shown as it is.
    """

    def __init__(
        self,
        pool: Pool,
        streams: Callable[[], Mapping[str, Stream]],
        *,
        development: bool = False,
    ) -> None:
        self._pool = pool
        self._streams = streams
        self._development = development

    async def terms(self) -> ShownTerms:
        """The terms that everybody may see who may ask for any."""
        own = await self._pool.report_counts()
        # Numbers that are drawn after these were counted are of streams that the table has.
        hidden = await self._pool.hidden.windows(own)
        streams = self._streams()
        hidden = hidden | {w for w in own if (stream := streams.get(w.stream)) and stream.is_noisy}
        if self._development:
            hidden_terms = what_left({w: own[w] for w in hidden}, streams, hidden)
            return ShownTerms({**{w: own[w] for w in own if w not in hidden}, **hidden_terms}, {})
        windows = what_left(own, streams, hidden)
        # PRIVACY: a total that omits some streams shows when a report of those arrived, and a total
        #     that includes them shows the number that is hidden.
        hides = hidden or any(stream.is_noisy for stream in streams.values())
        return ShownTerms(windows, sum_terms((windows if hides else own).values()))

    async def windows(self) -> WindowTerms:
        """The terms per window."""
        return (await self.terms()).windows


def what_left(
    terms: WindowTerms, streams: Mapping[str, Stream], hidden: Collection[Window]
) -> dict[Window, Mapping[str, int]]:
    """Of each window what has left its pool; windows that nothing has left are not named.

    hidden: windows that have a number drawn. Of those nothing that was withheld is shown either,
    and the dummies that are expected are in place of those that there are: a number of reports that
    came too late has no noise.
    """
    counts: dict[Window, Mapping[str, int]] = {}
    for window, own in terms.items():
        departures = own["acknowledged"] + own["dummies"] - own["pooled"]
        dummies, withheld = own["dummies"], own["withheld"]
        if window in hidden:
            departures, withheld = departures - withheld, 0
            stream = streams.get(window.stream)
            dummies = stream.expected_dummies if stream else 0
        if departures > 0:
            counts[window] = {
                "acknowledged": departures - dummies,
                "dummies": dummies,
                "pooled": 0,
                "in_flight": own["in_flight"],
                "withheld": withheld,
            }
    return counts
