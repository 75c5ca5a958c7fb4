"""The terms of the conservation law, as a running hubbub answers them."""

from typing import Any

from hubbub.cli.commands.demo import close_epochs
from hubbub.conservation import TERMS, balances
from hubbub.errors import ServiceUnavailable
from hubbub.installation.local_run import LocalRun
from hubbub.installation.running_endpoints import Endpoints
from tests.support.waiting import eventually


def report_counts(where: Endpoints) -> dict[tuple[str, int], dict[str, int]]:
    """The terms of the conservation law by stream and epoch; in production pooled reports are 0.

    Raises:
        ServiceUnavailable: the shuffler did not answer.
    """
    return {(line["stream"], line["epoch"]): _terms(line) for line in _law(where)["windows"]}


def total_counts(where: Endpoints) -> dict[str, int]:
    """The terms of the conservation law over all streams."""
    return _terms(_law(where)["total"])


def drained_counts(run: LocalRun) -> dict[str, int]:
    """Closes the epochs; the terms once all reports have left the shuffler."""
    close_epochs(run.shuffler_redis)
    terms: dict[str, int] = {}

    def is_drained() -> bool:
        terms.update(total_counts(run.endpoints))
        waiting = terms["pooled"] + terms["in_flight"]
        return terms["acknowledged"] > 0 and not waiting and balances(terms)

    eventually(is_drained, lambda: terms)
    return terms


def _terms(counts: dict[str, Any]) -> dict[str, int]:
    return {term: counts[term] or 0 for term in TERMS}


def _law(where: Endpoints) -> dict[str, Any]:
    law = where.service.ask("/v1/status")
    if not law["complete"]:
        raise ServiceUnavailable(
            f"{where.page} does not have the shuffler's terms: start it with --shuffler-status, "
            "and the shuffler too"
        )
    return law
