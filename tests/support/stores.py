"""What a store holds in one window, as tests ask it."""

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.conservation import Window
from hubbub.mechanisms import Totals


async def totals(store: TotalsStore, window: Window) -> Totals:
    [held] = await store.read([window])
    return held.totals


async def batch_reports(store: TotalsStore, window: Window) -> int:
    [held] = await store.read([window])
    return held.batch_reports
