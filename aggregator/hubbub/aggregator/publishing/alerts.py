"""Publishes alerts of the catalog to the webhook; each epoch is judged once."""

import asyncio
import logging
from dataclasses import asdict
from typing import Final

from hubbub.aggregator.publishing.publisher import Closed, Webhook
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.alert_verdicts import judge, judged_epochs
from hubbub.catalog import Metric
from hubbub.errors import HubbubError, TotalsUnreadable

_log: Final = logging.getLogger("hubbub.aggregator")
_LOOK_SECONDS: Final = 30.0
# After an outage this many epochs are checked later; a new alert does not report on last year.
_EPOCHS: Final = 7


class AlertPublisher:
    """Judges epochs that are over, and sends the alerts."""

    def __init__(self, query: QueryEngine, webhook: Webhook) -> None:
        self._query = query
        self._webhook = webhook

    async def run(self) -> None:
        """Publishes repeatedly, until cancelled. What cannot be sent now is sent later."""
        while True:
            try:
                await self.publish_due()
            except HubbubError as error:
                _log.warning("alerts wait: %s", error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def publish_due(self) -> int:
        """Judges the due epochs, and returns the number of sent alerts."""
        sent = 0
        for metric in self._query.collected.bundle.metrics.values():
            if metric.alert:
                judged = await judged_epochs(self._query, metric, _EPOCHS)
                for epoch in judged.epochs:
                    sent += await self._publish(metric, epoch, judged.date(epoch))
        return sent

    async def _publish(self, metric: Metric, epoch: int, date: str) -> bool:
        """Sends the alert of this epoch, if there is one; returns whether it was sent now."""
        name = f"alert:{metric.name}"
        if not await self._webhook.wants(name, epoch, date):
            return False
        try:
            alarm = await judge(self._query, metric, epoch)
            if alarm is None or not alarm.fired:
                await self._webhook.pass_over(f"{name}:{epoch}")
                return False
            document = {"id": f"{name}:{epoch}", "kind": "alert", **asdict(alarm)}
            await self._webhook.take(
                Closed(
                    id=document["id"], metric=metric.name, epoch=epoch, date=date, document=document
                )
            )
        except (OSError, TotalsUnreadable) as error:
            _log.warning(
                "the alarm of %s, %s, was not sent and will be sent again: %s",
                metric.name,
                date,
                error,
            )
            return False
        return True
