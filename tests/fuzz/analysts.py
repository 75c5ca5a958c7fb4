"""Answers of a hostile aggregator: to a notebook's connection, and to the command line.

JSON of any shape and messages of any content are shown, or refused in the words of an error.
"""

import contextlib
import io
import json
import random
import unicodedata
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from email.message import Message as Headers
from typing import Any, cast

from google.protobuf.message import DecodeError, Message

from hubbub.aggregator.publishing.table_files import to_csv
from hubbub.cli.terminal.answer_tables import show_changes, show_estimates, show_top, show_trend
from hubbub.cli.terminal.breakdown_table import show_breakdown
from hubbub.cli.terminal.cross_table import show_cross
from hubbub.cli.terminal.output import table
from hubbub.cli.terminal.query_options import checked, document
from hubbub.errors import HubbubError
from hubbub.notebook.answer import Answer
from hubbub.notebook.connection import Connection
from hubbub.notebook.service import Service
from hubbub.query_results import QueryName, whole_rows
from hubbub.wire.v1 import services_pb2 as wire
from tests.fuzz.documents import varied
from tests.fuzz.mutate import mutated, odd
from tests.fuzz.target import Target

# More pages than what was asked for can have.
MAX_PAGES = 100
# A part of the messages is drawn as tables, which takes a thousand times as long as to read them.
SHOWN = 8


class Opener:
    """Opens every address with the same answer: the first part says the status."""

    def __init__(self, status: int, body: bytes) -> None:
        self._status, self._body = status, body
        self.asked = 0

    def open(self, request: urllib.request.Request, timeout: float) -> Any:
        assert timeout > 0
        self.asked += 1
        assert self.asked < MAX_PAGES, "asks for ever"
        if self._status >= 400:
            raise urllib.error.HTTPError(
                request.full_url, self._status, "said \x1b[2J", Headers(), io.BytesIO(self._body)
            )
        return io.BytesIO(self._body)


def analysts() -> Mapping[str, Target]:
    """Targets by name."""
    return {
        "answer_json": Target([json.dumps(one).encode() for one in _ANSWERS], _notebook, varied),
        "answer_message": Target(_messages(), _command_line, _odd),
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
        opener = cast("Any", Opener(status, data))
        with contextlib.suppress(HubbubError):
            answer = question(Connection(Service("http://127.0.0.1:1", "token", opener, 1.0)))
            assert status < 400
            for row in answer:
                dict(row)
            repr(answer)
            answer._repr_html_().encode(errors="replace")


def _command_line(data: bytes) -> None:
    """data: which message, and its bytes."""
    if not data:
        return
    kind, question, show = _SHOWN[data[0] % len(_SHOWN)]
    try:
        message = kind.FromString(data[1:])
    except DecodeError:
        return
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(HubbubError):
        found = checked(question, document(message))
        to_csv(whole_rows(question, found))
        if zlib.crc32(data) % SHOWN == 0:
            show(found)
    seen = set(out.getvalue()) - {"\n"}
    assert not any(unicodedata.category(one) in {"Cc", "Cf"} for one in seen), "a control character"


def _messages() -> list[bytes]:
    value = wire.ValueAnswer(value="dark", estimate=3.0, low=1.0, high=5.0, rank=1, consistent=3.0)
    epoch = wire.Epoch(epoch=20_000, begins="2026-11-01T00:00:00Z", reports=30)
    mean = wire.Mean(estimate=1.0, low=0.5, high=2.0)
    told = [
        wire.Estimated(
            metric="theme",
            epochs=[1, 2, 4],
            reports=30,
            kind="values",
            confidence=0.95,
            shuffled=wire.Shuffled(epsilon=0.1, delta=1e-9, reports=30, assumption="if"),
            findings=["odd"],
            mean=mean,
            others=mean,
            fit_p_value=1e-9,
            total=2,
            values=[value, value],
        ),
        wire.TopList(
            metric="theme",
            reports=30,
            values=[wire.TopValue(value=value, ahead_confidence=0.5)] * 2,
        ),
        wire.Compared(metric="theme", kind="values", values=[wire.Change(value="dark")] * 2),
        wire.Trended(
            metric="theme",
            epochs=[epoch],
            series=[wire.Series(value="dark", points=[wire.Point(epoch=20_000, share=0.5)])],
        ),
        wire.Crossed(
            metric="theme",
            rows="a",
            columns="b",
            association=wire.Association(rare_rows=["x", "y"]),
            values=[wire.Cell(row="x", column="z")] * 2,
        ),
        wire.BrokenDown(
            metric="theme",
            by="os",
            parts=[wire.PublicPart(part="linux", withheld=3)],
            values=[wire.PartRow(part="linux", value="dark", p_value=0.5)] * 2,
        ),
        wire.MetricsResponse(metrics=[wire.MetricLine(name="theme", epochs=[epoch])]),
    ]
    return [bytes([place]) + one.SerializeToString() for place, one in enumerate(told)]


def _show_metrics(found: dict[str, Any]) -> None:
    for metric in found["metrics"]:
        table("metrics", ("name", "asks for"), [(metric["name"], metric["description"])])


_SHOWN: Sequence[tuple[type[Message], QueryName, Callable[[dict[str, Any]], None]]] = (
    (wire.Estimated, "estimates", show_estimates),
    (wire.TopList, "top", show_top),
    (wire.Compared, "compare", show_changes),
    (wire.Trended, "trend", show_trend),
    (wire.Crossed, "cross", show_cross),
    (wire.BrokenDown, "breakdown", show_breakdown),
    (wire.MetricsResponse, "metrics", _show_metrics),
)


def _odd(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    example = chance.choice(examples) or b"\0"
    kind = _SHOWN[example[0] % len(_SHOWN)][0]
    if chance.random() < 0.7:
        with contextlib.suppress(DecodeError):
            return example[:1] + odd(chance, example[1:], kind)
    return mutated(chance, examples)


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
