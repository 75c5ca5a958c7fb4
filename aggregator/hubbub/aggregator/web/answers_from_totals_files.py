"""Answers HTTP queries in this process, from files of totals: without service or Redis.

The routes are those of the aggregator, so all numbers are equal. Data that only Redis has (saved
lists, marks, rounds of models, releases) are missing.
"""

import asyncio
import json
import urllib.parse
import urllib.request
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from hubbub.aggregator.access.audit_trail import Seen
from hubbub.aggregator.access.tokens import EVERYONE
from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.cache import Turns
from hubbub.aggregator.store.files import FileTotals, newest_bundle
from hubbub.aggregator.web.commands_to_copy import Reached
from hubbub.aggregator.web.problems import handle_problems
from hubbub.aggregator.web.query_routes import QUESTIONS
from hubbub.bundles import Bundle, read_bundle
from hubbub.catalog import EPOCH_SECONDS
from hubbub.epochs import epoch_dates
from hubbub.errors import TotalsUnreadable
from hubbub.programs.http_calls import Answer


def totals_at(
    place: str,
    bundle: Path | None = None,
    *,
    left_out: set[tuple[str, int]] | None = None,
    fresh_seconds: float = 0.0,
) -> tuple[FileTotals, Bundle]:
    """Returns the totals that `hubbub aggregator --totals` wrote, and the bundle of them.

    `bundle` is its file; None for the newest beside the totals. The others are as in FileTotals.

    Raises:
        BadParameter: an invalid address.
        TotalsUnreadable: the place has no totals.
        BundleRefused: the place has no bundle, or the file is invalid.
        StoreUnavailable: the place cannot be read.
        MissingDependency: pyarrow is not installed.
    """
    totals_place = Place.of(place)
    if not totals_place.entries("totals"):
        raise TotalsUnreadable(
            f"{totals_place.name}: contains no totals of hubbub; name the folder or address that "
            "hubbub aggregator --totals writes"
        )
    definitions = read_bundle(bundle) if bundle else newest_bundle(totals_place)
    files = FileTotals(totals_place, lambda: definitions, fresh_seconds, left_out=left_out)
    return files, definitions


class FileAnswers:
    """Answers the calls of `hubbub.notebook`'s Service in this process, from files.

    Arguments and errors are those of `totals_at`. Each call reads the files again.

    Args:
        skip_unreadable: leave out epochs whose files are missing or unreadable, and name them in
            the answer's notice.
    """

    def __init__(
        self,
        place: str,
        bundle: Path | None = None,
        *,
        skip_unreadable: bool = False,
    ) -> None:
        self._left_out: set[tuple[str, int]] = set()
        left_out = self._left_out if skip_unreadable else None
        files, definitions = totals_at(place, bundle, left_out=left_out)
        self._bundle = definitions
        self._app = FastAPI()
        handle_problems(self._app)
        self._app.routes.extend(QUESTIONS.routes)
        self._app.state.reached = Reached("", tokens=False)
        self._make_engine = partial(QueryEngine, definitions, files)
        # A notebook has a running loop in its own thread.
        self._apart = ThreadPoolExecutor(1, "answers")

    def answer(self, request: urllib.request.Request, max_bytes: int) -> Answer:
        """Returns the answer to one request, of any size; `max_bytes` is for remote services."""
        del max_bytes
        return self._apart.submit(asyncio.run, self._readable_answer(request)).result()

    async def _readable_answer(self, request: urllib.request.Request) -> Answer:
        """Returns the answer, without unreadable epochs if these may be left out."""
        self._left_out.clear()
        while True:
            before = len(self._left_out)
            answer = await self._answer(request)
            if answer.is_success or len(self._left_out) == before:
                return self._with_omission_note(answer) if self._left_out else answer

    def _with_omission_note(self, answer: Answer) -> Answer:
        """Returns the answer with a sentence that names the omitted epochs."""
        epochs: dict[str, list[int]] = {}
        for name, epoch in sorted(self._left_out):
            epochs.setdefault(name, []).append(epoch)
        dates = ", ".join(
            f"{name} of {epoch_dates(numbers, EPOCH_SECONDS[self._bundle.metric(name).epoch])}"
            for name, numbers in epochs.items()
        )
        document, field = json.loads(answer.body), "notice" if answer.is_success else "detail"
        sentence = f"Left out, because their files of totals cannot be read: {dates}."
        document[field] = f"{sentence} {document.get(field, '')}".rstrip()
        return answer._replace(body=json.dumps(document).encode())

    async def _answer(self, request: urllib.request.Request) -> Answer:
        # Both belong to one event loop.
        self._app.state.query, self._app.state.body_turns = self._make_engine(), Turns()
        sent: list[MutableMapping[str, Any]] = []
        body: Any = request.data or b""

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        path, _, query = request.selector.partition("?")
        headers = [(name.lower().encode(), text.encode()) for name, text in request.header_items()]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": request.get_method(),
            "scheme": "http",
            "path": urllib.parse.unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [*headers, (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", 80),
            "state": {"caller": EVERYONE, "seen": Seen()},
        }
        await self._app(scope, receive, send)
        status = HTTPStatus(sent[0]["status"])
        return Answer(status, status.phrase, b"".join(part.get("body", b"") for part in sent[1:]))
