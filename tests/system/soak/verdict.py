"""The verdict: what devices heard beside what was counted, and refusals beside the metrics."""

import ssl
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from hubbub.cli.commands.demo import close_epochs
from hubbub.conservation import balances, sum_terms
from hubbub.errors import ServiceUnavailable
from hubbub.installation.local_run import LocalRun
from tests.support.law_terms import report_counts, total_counts
from tests.support.waiting import HANG_SECONDS

THROTTLED = "hubbub_throttled_calls"
# How a service refuses; a caller that is still sending may hear INTERNAL of it. What is not served
# at all is UNIMPLEMENTED, and the strangers' own patience ends with DEADLINE_EXCEEDED.
REFUSED = ("RESOURCE_EXHAUSTED", "PERMISSION_DENIED", "INTERNAL")


def counted(
    house: LocalRun, sent: Mapping[str, int], tell: Callable[[str], None]
) -> tuple[dict[str, int], list[str]]:
    """Let it drain: the whole law, and what is wrong with it.

    In production the law tells nothing of what waits, so it balances before all has left.
    """
    close_epochs(house.shuffler_redis)
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            windows, terms = report_counts(house.endpoints), total_counts(house.endpoints)
        except ServiceUnavailable:
            windows, terms = {}, sum_terms(())
        tell(f"draining: {terms}")
        wrong = [
            f"{name}: the law does not balance: {window_counts}"
            for name, window_counts in windows.items()
            if not balances(window_counts)
        ]
        counts: Counter[str] = Counter()
        for (stream, _), window_counts in windows.items():
            counts[stream] += window_counts["counted"]
        wrong += [
            f"{stream}: {number} acknowledged, {counts[stream]} counted"
            for stream, number in sent.items()
            if counts[stream] != number
        ]
        is_quiet = not (terms["pooled"] or terms["in_flight"] or wrong)
        if is_quiet or time.monotonic() > deadline:
            return terms, wrong
        time.sleep(0.2)


def told_refusals(tls: Path, port: int) -> int:
    """How many calls a service says it has turned away, for whatever reason."""
    context = ssl.create_default_context(cafile=tls / "ca.pem")
    context.load_cert_chain(tls / "analyst.pem", tls / "analyst.key")
    with urllib.request.urlopen(
        f"https://127.0.0.1:{port}/metrics", timeout=HANG_SECONDS, context=context
    ) as answer:
        text = answer.read().decode()
    return round(
        sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith(THROTTLED) and sample.name.endswith("_total")
        )
    )


def refusals(met: Mapping[str, int]) -> int:
    """How many calls of strangers were refused by the service."""
    return sum(number for what, number in met.items() if what.endswith(REFUSED))


def percentile(seconds: list[float], part: float) -> float:
    """Of sorted figures; infinite if there are none."""
    return seconds[min(len(seconds) - 1, int(part * len(seconds)))] if seconds else float("inf")
