"""Publishes the estimates of every closed epoch, to a folder or to a webhook; and alerts.

An epoch is published once its totals are final, so that no sink needs it twice. Files are written
atomically. A webhook receives an epoch until it answers 2xx, from one aggregator at a time: at
least once, so it should deduplicate by `id`.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from hubbub.aggregator.exported_files import to_csv
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.alert_verdicts import judge, judged_epochs
from hubbub.aggregator.query.candidates import looks_for_strings
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.catalog import Metric
from hubbub.errors import BadParameter, BatchTooSmall, HubbubError, StateUnusable, TotalsUnreadable
from hubbub.errors.address_checks import server_parts
from hubbub.programs.atomic_write import replace_file
from hubbub.programs.http_calls import HttpCalls, NoHttp
from hubbub.query_results.answer_table import whole_rows
from hubbub.runtime.redis.command_sender import Hashes

_log: Final = logging.getLogger("hubbub.aggregator")
_LOOK_SECONDS: Final = 30.0
_CALL_SECONDS: Final = 30.0
_ANSWER_BYTES: Final = 16 << 20  # largest answer of a webhook that is read and ignored
# After this time another process takes over an epoch that a killed process claimed.
_CLAIM_SECONDS: Final = 600
# After an outage alerts of this many epochs are judged; a new alert does not report on last year.
_JUDGED_EPOCHS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """One epoch as published."""

    metric: str
    date: str
    document: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Its identifier, the same whenever it is published again."""
        return str(self.document["id"])

    def json(self) -> bytes:
        """The document as it is written and sent."""
        return json.dumps(self.document, indent=1, ensure_ascii=False).encode() + b"\n"


class Sink(Protocol):
    """A destination of closed epochs."""

    async def wants(self, metric: str, epoch: int, date: str) -> bool:
        """Whether it does not have this epoch yet, and nobody else is about to publish it."""

    async def take(self, closed: Closed) -> None:
        """Accepts it. Raises OSError if it cannot; ConnectionError if it can accept nothing now."""


class Folder:
    """A Sink: files FOLDER/METRIC/DATE.json, and .csv if there are values.

    Until 2026-11 the epoch's number was used instead of its date; such files count as written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateUnusable(f"--export-dir {folder}: {error.strerror}") from error

    async def wants(self, metric: str, epoch: int, date: str) -> bool:
        """Whether the epoch has no file yet."""
        folder = self._folder / metric
        return not any((folder / f"{name}.json").exists() for name in (file_name(date), epoch))

    async def take(self, closed: Closed) -> None:
        """Writes the files; the JSON last, as the sign that all are complete."""

        def write() -> None:
            folder = self._folder / closed.metric
            folder.mkdir(exist_ok=True)
            if "values" in closed.document:
                table = to_csv(whole_rows("estimates", closed.document)).encode()
                replace_file(folder / f"{file_name(closed.date)}.csv", table)
            replace_file(folder / f"{file_name(closed.date)}.json", closed.json())

        await asyncio.to_thread(write)


def file_name(date: str) -> str:
    """A date as part of a file name: an hour's without its colon."""
    return date.replace(":", "")


class DeliveryLog:
    """The delivered epochs of all aggregators: `aggregator:told`, name -> "told", or its claim."""

    def __init__(self, server: Hashes, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._clock = clock

    async def claim(self, name: str) -> bool:
        """Claims an epoch; False if it was sent, or another aggregator is sending it.

        This and the other methods raise StoreUnavailable without Redis.
        """
        ask, now = self._server.ask, str(int(self._clock()))
        if await ask("HSETNX", "aggregator:told", name, now):
            return True
        mark = await ask("HGET", "aggregator:told", name) or b""
        # Neither "told" nor a time: no process works on it.
        since = int(mark) if mark.isdigit() and len(mark) <= len(now) else 0
        if mark == b"told" or since > self._clock() - _CLAIM_SECONDS:
            return False
        await ask("HSET", "aggregator:told", name, now)
        return True

    async def release(self, name: str) -> None:
        """Gives up a claim after a failure, so that anyone may try next."""
        await self._server.ask("HDEL", "aggregator:told", name)

    async def mark_delivered(self, name: str) -> None:
        """Records the delivery."""
        await self._server.ask("HSET", "aggregator:told", name, "told")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReceiver:
    """A Sink: POSTs to one address, each until the answer is 2xx, by one aggregator at a time.

    Args:
        setting: option that contains the address, for errors.
        name: of the receiver, for errors.
        encode: headers and body of a request; None for an epoch that is not sent.
        kind: prefix of ids in the delivery log, since several addresses get the same epochs.
        calls: makes the calls.

    Raises:
        BadParameter: no http or https address.
    """

    url: str
    delivery_log: DeliveryLog
    setting: str
    name: str
    encode: Callable[[Closed], tuple[Mapping[str, str], bytes] | None]
    kind: str = ""
    calls: HttpCalls = field(default_factory=lambda: HttpCalls(_CALL_SECONDS))

    def __post_init__(self) -> None:
        """Checks the address."""
        if server_parts(self.url) is None:
            raise BadParameter(f"{self.setting} must be an address: https://HOST/PATH")

    async def wants(self, metric: str, epoch: int, date: str) -> bool:
        """Claims the epoch; returns whether this process must send it."""
        del date  # its number identifies it, as before dates existed
        return await self.delivery_log.claim(f"{self.kind}{metric}:{epoch}")

    async def take(self, closed: Closed) -> None:
        """Sends it. Raises OSError with the reason, unless the answer is 2xx."""
        if request := self.encode(closed):
            try:
                await asyncio.to_thread(self._post, *request)
            except OSError:
                await self.delivery_log.release(self.kind + closed.id)
                raise
        await self.pass_over(closed.id)

    async def pass_over(self, name: str) -> None:
        """Marks it as done without sending it."""
        await self.delivery_log.mark_delivered(self.kind + name)

    def _post(self, headers: Mapping[str, str], body: bytes) -> None:
        request = urllib.request.Request(self.url, body, dict(headers))  # noqa: S310 http or https, as checked
        try:
            answer = self.calls.answer(request, _ANSWER_BYTES)
        except NoHttp as error:
            raise OSError(f"the {self.name}'s {error}") from error
        except OSError as error:
            raise ConnectionError(f"the {self.name} does not answer: {error}") from error
        if not answer.is_success:
            raise OSError(f"the {self.name} answered {answer.status}")


def webhook(
    url: str, secret: bytes, delivery_log: DeliveryLog, seconds: float = _CALL_SECONDS
) -> HttpReceiver:
    """The receiver of the JSON; with a secret, signed: X-Hubbub-Signature, HMAC-SHA-256."""

    def encode(closed: Closed) -> tuple[Mapping[str, str], bytes]:
        body = closed.json()
        headers = {"Content-Type": "application/json", "X-Hubbub-Id": closed.id}
        if secret:
            signed = hmac.new(secret, body, hashlib.sha256).hexdigest()
            headers["X-Hubbub-Signature"] = f"sha256={signed}"
        return headers, body

    return HttpReceiver(
        url=url,
        delivery_log=delivery_log,
        setting="--webhook",
        name="webhook",
        encode=encode,
        calls=HttpCalls(seconds),
    )


class EpochPublisher:
    """Publishes closed epochs to every sink.

    Args:
        at_once: number of metrics published in parallel; each metric's epochs go in order.
    """

    def __init__(self, query: QueryEngine, sinks: list[Sink], at_once: int = 1) -> None:
        self._query = query
        self._sinks = sinks
        self._at_once = at_once

    async def run(self) -> None:
        """Publishes repeatedly, until cancelled. Epochs not accepted are published later."""
        while True:
            try:
                await self.publish_closed()
            except HubbubError as error:
                _log.warning("closed epochs are not published yet: %s", error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def publish_closed(self) -> int:
        """Publishes due epochs, logs failures, and returns the number of successes."""
        count, missed = await self.give_closed()
        if missed:
            _log.warning(
                "%s closed epochs could not be published and will be tried again; the first: %s",
                len(missed),
                missed[0],
            )
        return count

    async def give_closed(self) -> tuple[int, list[str]]:
        """Publishes due epochs: the number of successes, and a sentence for each failure."""
        missed: list[str] = []
        failing: set[Sink] = set()
        turns = asyncio.Semaphore(self._at_once)

        async def give(selection: EpochSelection) -> int:
            async with turns:
                closed = [
                    epoch
                    for epoch in selection.epochs
                    if self._query.collected.is_closed(selection.metric, epoch)
                ]
                return sum(
                    [await self._give(selection, epoch, failing, missed) for epoch in closed]
                )

        counts = await asyncio.gather(*map(give, await self._query.collected.find_all()))
        return sum(counts), missed

    async def _give(
        self, selection: EpochSelection, epoch: int, failing: set[Sink], missed: list[str]
    ) -> int:
        """Number of sinks that accepted an epoch; extends `failing` and `missed` by failures."""
        name, date, count = selection.metric.name, selection.date(epoch), 0
        for sink in self._sinks:
            if sink in failing or not await sink.wants(name, epoch, date):
                continue
            try:
                await sink.take(await self._closed_message(selection, epoch))
                count += 1
            except (OSError, TotalsUnreadable) as error:
                remark = ""
                if isinstance(error, ConnectionError):
                    failing.add(sink)
                    remark = ", and none after it was tried"
                missed.append(f"{name} of {date}: {error}{remark}")
        return count

    async def _closed_message(self, selection: EpochSelection, epoch: int) -> Closed:
        metric, date = selection.metric, selection.date(epoch)
        document: dict[str, Any] = {
            "id": f"{metric.name}:{epoch}",
            "metric": metric.name,
            "epoch": epoch,
            "date": date,
        }
        reports = {"reports": selection.by_epoch()[epoch]}
        if metric.model:
            document |= {**reports, "kind": "model"}
        elif looks_for_strings(metric) and not metric.candidates:
            document |= {**reports, "kind": "strings"}
        else:
            query = EstimateQuery(range=EpochRange(epochs=str(epoch)))
            try:
                document |= asdict(await self._query.estimate(metric.name, query))
            except BatchTooSmall as error:
                document |= {**reports, "refused": str(error)}
        return Closed(metric=metric.name, date=date, document=document)


class AlertPublisher:
    """Judges epochs that are over, and sends the alerts."""

    def __init__(self, query: QueryEngine, webhook: HttpReceiver) -> None:
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
                selection = await judged_epochs(self._query, metric, _JUDGED_EPOCHS)
                for epoch in selection.epochs:
                    sent += await self._publish(metric, epoch, selection.date(epoch))
        return sent

    async def _publish(self, metric: Metric, epoch: int, date: str) -> bool:
        """Sends the alert of this epoch, if there is one; returns whether it was sent now."""
        name = f"alert:{metric.name}"
        if not await self._webhook.wants(name, epoch, date):
            return False
        try:
            verdict = await judge(self._query, metric, epoch)
            if verdict is None or not verdict.fired:
                await self._webhook.pass_over(f"{name}:{epoch}")
                return False
            document = {"id": f"{name}:{epoch}", "kind": "alert", **asdict(verdict)}
            await self._webhook.take(Closed(metric=metric.name, date=date, document=document))
        except (OSError, TotalsUnreadable) as error:
            _log.warning(
                "the alert of %s, %s, was not sent and will be sent again: %s",
                metric.name,
                date,
                error,
            )
            return False
        return True
