"""Answers of a hostile aggregator: to a notebook's connection, and to the command line.

JSON of any shape is shown, or refused in the words of an error.
"""

import contextlib
import io
import json
import unicodedata
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hubbub.aggregator.exported_files import to_csv
from hubbub.cli.commands.query import show_breakdown, show_cross
from hubbub.cli.terminal.answer_tables import show_changes, show_estimates, show_top, show_trend
from hubbub.cli.terminal.output import table
from hubbub.errors import HubbubError
from hubbub.notebook.answer import Answer
from hubbub.notebook.connection import Connection
from hubbub.notebook.http_client import MISSHAPEN, Service
from hubbub.programs.http_calls import Answer as HttpAnswer
from hubbub.programs.http_calls import HttpCalls
from hubbub.query_results.answer_table import whole_rows
from tests.fuzz.documents import varied
from tests.fuzz.target import Target

# More pages than what was asked for can have.
MAX_PAGES = 100
# A part of the messages is drawn as tables, which takes a thousand times as long as to read them.
MAX_ROWS = 8


class SameAnswer(HttpCalls):
    """Answers every call alike."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(1.0)
        self._same = HttpAnswer(status, "said \x1b[2J", body)
        self._calls = 0

    def answer(self, request: urllib.request.Request, most_bytes: int) -> HttpAnswer:
        del request, most_bytes
        self._calls += 1
        assert self._calls < MAX_PAGES, "asks for ever"
        return self._same


def analysts() -> Mapping[str, Target]:
    """Targets by name."""
    return {
        "answer_json": Target(
            [json.dumps(answer).encode() for answer in _ANSWERS], _notebook, varied
        ),
        "answer_shown": Target(
            [json.dumps(answer).encode() for answer in _ANSWERS], _command_line, varied
        ),
    }


def _notebook(data: bytes) -> None:
    """data: an answer's body, to every question."""
    statuses = (200, 200, 200, 400, 404, 500, 503)
    status = statuses[len(data) % len(statuses)]
    questions: Sequence[Callable[[Connection], Answer]] = (
        lambda to: to.metrics(),
        lambda to: to.estimates("theme"),
        lambda to: to.top("theme"),
        lambda to: to.compare("theme", "1", "2"),
        lambda to: to.trend("theme", ["dark"]),
        lambda to: to.cross("theme", "a", "b"),
        lambda to: to.breakdown("theme", "os"),
    )
    for question in questions:
        calls = SameAnswer(status, data)
        with contextlib.suppress(HubbubError):
            answer = question(Connection(Service("http://127.0.0.1:1", "token", calls)))
            assert status < 400
            for row in answer:
                dict(row)
            repr(answer)
            answer._repr_html_().encode(errors="replace")


def _command_line(data: bytes) -> None:
    """data: an answer's body, as each command reads and shows it."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for ask, show in _QUERIES:
            calls = SameAnswer(200, data)
            # What ServiceOptions.connection turns into an error of the service.
            with contextlib.suppress(HubbubError, *MISSHAPEN):
                answer = ask(Connection(Service("http://127.0.0.1:1", "token", calls)))
                to_csv(whole_rows(answer.question, answer.document))
                if zlib.crc32(data) % MAX_ROWS == 0:
                    show(answer.document)
    characters = set(out.getvalue()) - {"\n"}
    assert not any(unicodedata.category(character) in {"Cc", "Cf"} for character in characters), (
        "a control character"
    )


def _show_metrics(answer: dict[str, Any]) -> None:
    for metric in answer["metrics"]:
        table("metrics", ("name", "asks for"), [(metric["name"], metric["description"])])


_QUERIES: Sequence[tuple[Callable[[Connection], Answer], Callable[[Any], None]]] = (
    (lambda to: to.estimates("theme"), show_estimates),
    (lambda to: to.top("theme"), show_top),
    (lambda to: to.compare("theme", "1", "2"), show_changes),
    (lambda to: to.trend("theme", ["dark"]), show_trend),
    (lambda to: to.cross("theme", "a", "b"), show_cross),
    (lambda to: to.breakdown("theme", "os"), show_breakdown),
    (lambda to: to.metrics(), _show_metrics),
)

_VALUE = {
    "value": "dark",
    "estimate": 3.5,
    "stderr": 1.0,
    "low": 1.0,
    "high": 5.0,
    "share": 0.1,
    "rank": 1,
    "detected": True,
    "consistent": 3.0,
}
_ANSWERS: Sequence[dict[str, Any]] = (
    {
        "total": 3,
        "metrics": [{"name": "theme", "kind": "values", "reports": 30, "updated": None}],
    },
    {"metric": "theme", "reports": 30, "final": False, "total": 2, "values": [_VALUE, _VALUE]},
    {"metric": "theme", "reports": 30, "values": [{"value": _VALUE, "ahead_confidence": 0.5}]},
    {
        "metric": "theme",
        "before_reports": 30,
        "after_reports": 40,
        "total": 1,
        "values": [{"value": "dark", "before": 0.5, "after": 0.25, "difference": -0.25}],
    },
    {
        "metric": "theme",
        "epochs": [{"epoch": 1, "begins": "2026-11-01", "reports": 3}],
        "series": [{"value": "dark", "points": [{"epoch": 1, "share": 0.5}]}],
    },
    {"type": "about:blank", "title": "BadParameter", "status": 400, "detail": "no such range"},
)
