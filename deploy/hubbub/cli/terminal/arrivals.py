"""Reports of a development installation as they come, a line each, as a ledger has them."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from hubbub.cli.terminal.output import explain, say
from hubbub.cli.terminal.payloads import likeliest, sent
from hubbub.errors import ServiceUnavailable

Found = Mapping[str, Any]


def watch_arrivals(answer: Found, after: Callable[[int], Found], every_seconds: float) -> None:
    """Show what was found, and then what comes, until Ctrl-C.

    after: what came after the report of a number.
    """
    explain(answer["notice"])
    explain("Every report as it is counted, what was sent in hex, and what it could have meant:")
    last, message = 0, ""
    while True:
        for arrival in answer["arrivals"]:
            say(_line(arrival))
            last = arrival["number"]
        time.sleep(every_seconds)
        try:
            answer, message = after(last), ""
        except ServiceUnavailable as error:  # it comes back, or whoever watches ends this
            answer = {"arrivals": []}
            if str(error) != message:
                message = str(error)
                explain(message)


def _line(arrival: Mapping[str, Any]) -> str:
    meanings = [(meaning["value"], meaning["probability"]) for meaning in arrival["meanings"]]
    likeliest_value = likeliest(meanings, arrival["others"]) or "any string"
    return (
        f"{arrival['at'][11:19]}  {arrival['stream']}  {arrival['date']}  "
        f"epsilon {arrival['epsilon']:.3f}  {sent(arrival['payload'])}  {likeliest_value}"
    )
