"""The shuffler's terms of the conservation law as it shows them: only what has left the pools.

PRIVACY: a stream's count that grows as a report arrives links that report to whoever connected at
    that moment. So outside development nothing shows what waits in the pool of one stream: its
    terms change when a batch leaves, and never by fewer reports than a minimum batch.
"""

from collections.abc import Callable, Collection, Mapping

from hubbub.conservation import Window, sum_terms
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import Stream

WindowTerms = Mapping[Window, Mapping[str, int]]


class ShownCounts:
    """Reads the terms from the pool. Methods raise StoreUnavailable.

    `streams` returns the current stream table; in `development` every term is shown as it is.
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

    async def terms(self) -> tuple[WindowTerms, Mapping[str, int]]:
        """The terms that may be shown to every caller: per window, and over all streams as of now.

        The latter are empty if the former add up. Without "pooled" they omit waiting reports.
        """
        terms = await self._pool.report_counts()
        # Numbers drawn later belong to streams of the table.
        hidden = await self._pool.hidden.windows(terms)
        streams = self._streams()
        noisy = {name for name, stream in streams.items() if stream.is_noisy}
        hidden = hidden | {window for window in terms if window.stream in noisy}
        if self._development:
            hidden_terms = departed_terms({w: terms[w] for w in hidden}, streams, hidden)
            return {w: terms[w] for w in terms.keys() - hidden} | hidden_terms, {}
        windows = departed_terms(terms, streams, hidden)
        # PRIVACY: a total that omits some streams shows when a report of those arrived, and a total
        #     that includes them shows the number that is hidden.
        hides = hidden or noisy
        total = sum_terms((windows if hides else terms).values())
        if hides:
            del total["pooled"]
        return windows, total

    async def windows(self) -> WindowTerms:
        """The terms per window."""
        windows, _ = await self.terms()
        return windows


def departed_terms(
    terms: WindowTerms, streams: Mapping[str, Stream], hidden: Collection[Window]
) -> dict[Window, Mapping[str, int]]:
    """The terms of what has left each window's pool; windows that nothing has left are omitted.

    `hidden` are the windows with a drawn number. For those, withheld reports are not shown, since
    the number of late reports is without noise, and dummies are shown by their expected number.
    """
    counts: dict[Window, Mapping[str, int]] = {}
    for window, counted in terms.items():
        departures = counted["acknowledged"] + counted["dummies"] - counted["pooled"]
        dummies, withheld = counted["dummies"], counted["withheld"]
        if window in hidden:
            departures, withheld = departures - withheld, 0
            stream = streams.get(window.stream)
            # While a crowd leaves shard by shard, fewer than all its dummies may have left.
            dummies = min(stream.expected_dummies, departures) if stream else 0
        if departures > 0:
            counts[window] = {
                "acknowledged": departures - dummies,
                "dummies": dummies,
                "pooled": 0,
                "in_flight": counted["in_flight"],
                "withheld": withheld,
            }
    return counts
