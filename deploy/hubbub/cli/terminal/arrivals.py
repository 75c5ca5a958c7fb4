"""Reports of a development installation as they come, a line each, as a ledger has them."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from hubbub.cli.terminal.output import explain, say
from hubbub.cli.terminal.payloads import likeliest, sent
from hubbub.errors import ServiceUnavailable

Found = Mapping[str, Any]


def watch_arrivals(found: Found, after: Callable[[int], Found], every_seconds: float) -> None:
    """Show what was found, and then what comes, until Ctrl-C.

    after: what came after the report of a number.
    """
    explain(found["notice"])
    explain("Every report as it is counted, what was sent in hex, and what it could have meant:")
    last, said = 0, ""
    while True:
        for one in found["arrivals"]:
            say(_line(one))
            last = one["number"]
        time.sleep(every_seconds)
        try:
            found, said = after(last), ""
        except ServiceUnavailable as error:  # it comes back, or whoever watches ends this
            found = {"arrivals": []}
            if str(error) != said:
                said = str(error)
                explain(said)


def _line(one: Mapping[str, Any]) -> str:
    meanings = [(meaning["value"], meaning["probability"]) for meaning in one["meanings"]]
    return (
        f"{one['at'][11:19]}  {one['stream']}  {one['date']}  epsilon {one['epsilon']:.3f}  "
        f"{sent(one['payload'])}  {likeliest(meanings, one['others']) or 'any string'}"
    )
