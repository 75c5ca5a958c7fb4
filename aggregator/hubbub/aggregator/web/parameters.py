"""Typed parameters of requests, as in the OpenAPI document; and bodies of candidate strings.

A body may have 32 MiB, and is read without blocking other requests.
"""

import asyncio
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

from fastapi import Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError
from starlette.requests import ClientDisconnect

from hubbub.aggregator.access.audit_trail import Seen
from hubbub.aggregator.access.tokens import Caller, Role
from hubbub.aggregator.query import Page, QueryEngine
from hubbub.analysis.percentiles import MAX_PERCENTILES
from hubbub.errors import BadParameter
from hubbub.errors.message_words import did_you_mean
from hubbub.query_results.answer_table import COLUMNS
from hubbub.query_results.confidence_check import MAX_CONFIDENCE, MIN_CONFIDENCE

_LONGEST_RANGE = 400
_LONGEST = 200
_MAX_ROWS = 10_000
_LONGEST_QUOTED = 40

_FIELDS: Final = dict.fromkeys(
    field
    for question in (COLUMNS["estimates"], COLUMNS["compare"])
    for column in question
    for field in column.fields
)
if TYPE_CHECKING:
    Order = str
else:
    Order = Literal["listed", *(sign + field for field in _FIELDS for sign in ("", "-"))]
# The limit makes the parser check characters: a lone surrogate is malformed.
Text = Annotated[str, Field(max_length=65_536)]
CatalogName = Annotated[str, Path(max_length=_LONGEST, description="its name in the catalog")]
Last = Annotated[
    str | None,
    Query(max_length=_LONGEST_RANGE, description="counted back from now: 7 epochs, or 12h, 7d, 4w"),
]
Epochs = Annotated[
    str | None,
    Query(
        max_length=_LONGEST_RANGE,
        description="newest, closed, all, today, yesterday, 2026-11-22, 2026-11-22T14:00, a "
        "number, 2026-11-01..2026-11-07, or several",
    ),
]
Confidence = Annotated[
    float, Query(ge=MIN_CONFIDENCE, le=MAX_CONFIDENCE, description="of the intervals")
]
_OF_BUCKETS: Final = "for numbers with buckets: {} (repeatable)"
Percentiles = Annotated[
    list[float] | None,
    Query(max_length=MAX_PERCENTILES, description=_OF_BUCKETS.format("percentile in (0, 100)")),
]
Below = Annotated[
    list[float] | None,
    Query(
        max_length=MAX_PERCENTILES, description=_OF_BUCKETS.format("the share below this number")
    ),
]
Lists = Annotated[
    list[str] | None,
    Query(
        alias="list",
        max_length=20,
        description="strings to look for: catalog, or the name of a saved list (repeatable); by "
        "default the catalog's",
    ),
]
Tier = Annotated[
    str | None,
    Query(
        max_length=_LONGEST,
        description="only one tier, by its epsilon; or tree: only devices that find strings",
    ),
]


async def _page(
    first: Annotated[int, Query(ge=0, le=10_000_000, description="rows before the page")] = 0,
    number: Annotated[int, Query(ge=1, le=_MAX_ROWS, description="rows of the page")] = 100,
    order: Annotated[
        Order,
        Query(
            description="rank, the largest first; listed, as the catalog has it; or a field, the "
            "largest first with - before it"
        ),
    ] = "rank",
    find: Annotated[
        str, Query(max_length=_LONGEST, description="only values whose name contains this text")
    ] = "",
) -> Page:
    return Page(first, number, order, find)


Paged = Annotated[Page, Depends(_page)]
"""The requested rows."""


def link_next(request: Request, response: Response, first: int, number: int) -> None:
    """Links to the page after the `number` rows from `first` on (RFC 8288)."""
    url = request.url.include_query_params(first=first + number, number=number)
    response.headers["link"] = f'<{url.path}?{url.query}>; rel="next"'


_bearer = HTTPBearer(
    auto_error=False, description="a token of `hubbub keys token`, if the service requires one"
)


def needs(role: Role) -> Any:
    """A dependency that requires known parameters, and this role, or a higher one, for a metric."""

    async def check(
        request: Request,
        _checked: Annotated[None, Depends(check_parameters)],
        _bearer: Annotated[object, Depends(_bearer)],
    ) -> None:
        caller: Caller = request.state.caller
        if not caller.may_all:
            caller.check(role)

    return Depends(check)


def audit_facts(request: Request) -> Seen:
    """What routes add to a request's audit line."""
    facts: Seen = request.state.seen
    return facts


async def _caller(request: Request) -> Caller:
    # The guard has already refused unknown callers of these routes.
    caller: Caller = request.state.caller
    return caller


Who = Annotated[Caller, Depends(_caller)]
"""Who asks."""


async def _engine_of_caller(request: Request) -> QueryEngine:
    query: QueryEngine = request.app.state.query
    caller: Caller = request.state.caller
    # In a thread: the first question of a caller makes a bundle of the metrics that they see.
    return query if caller.may_all else await asyncio.to_thread(query.for_viewer, caller)


Questions = Annotated[QueryEngine, Depends(_engine_of_caller)]
"""What answers them, of the metrics that they see."""


async def check_parameters(request: Request) -> None:
    """Raises BadParameter for a query parameter that the route does not have, or not repeated."""
    route = request.scope["route"]
    if not (request.query_params and route.path.startswith("/v1/")):
        return
    dependants, annotations = [route.dependant], dict[str, Any]()
    for dependant in dependants:
        dependants += dependant.dependencies
        annotations |= {each.alias: each.field_info.annotation for each in dependant.query_params}
    names = sorted(annotations)
    for name in request.query_params:
        quoted = ascii(name[:_LONGEST_QUOTED])
        # An optional parameter is a choice with None.
        choices = annotations.get(name), *get_args(annotations.get(name))
        is_list = any(get_origin(choice) is list for choice in choices)
        if not is_list and len(request.query_params.getlist(name)) > 1:
            raise BadParameter(f"{quoted} is given more than once: give it once")
        if name not in names:
            remedy = ": this path has none; leave it out"
            if names:
                remedy = f"{did_you_mean(name, names, otherwise='.')} There are {', '.join(names)}"
            raise BadParameter(f"there is no parameter {quoted} here{remedy}")


_MAX_STRINGS: Final = 1_000_000
# Smaller bodies are read at once: it takes a millisecond.
_LARGE_BYTES: Final = 64 << 10

_HEAD: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*"candidates"[ \t\r\n]*:[ \t\r\n]*\[[ \t\r\n]*')
_BETWEEN: Final = re.compile(r"[ \t\r\n]*([,\]])[ \t\r\n]*")
_TAIL: Final = re.compile(r"[ \t\r\n]*\}[ \t\r\n]*\Z")


class Candidates(BaseModel):
    """The candidate strings of a query of strings."""

    model_config = ConfigDict(extra="forbid")

    candidates: Annotated[list[Text], Field(min_length=1, max_length=_MAX_STRINGS), FailFast()]


OPENAPI: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Candidates"}}},
    }
}
"""For the OpenAPI document: what a route with such a body takes."""


async def read_candidates(request: Request) -> Candidates:
    """Returns the strings of a request's body.

    Raises:
        RequestValidationError: it is not a JSON object with only `candidates`, a list of texts.
        ServiceUnavailable: too many large bodies wait already.
    """
    try:
        raw = await request.body()
    except ClientDisconnect:
        raise _malformed("body", "ends before its length") from None
    if len(raw) <= _LARGE_BYTES:
        body = parse(raw)
    else:
        async with request.app.state.body_turns.turn():
            body = await asyncio.to_thread(parse, raw)
    audit_facts(request).candidates = len(body.candidates)
    return body


def parse(raw: bytes) -> Candidates:
    """Returns the strings of a body, which it parses one at a time.

    A parser of whole documents would hold the interpreter's lock until its end, and build any
    nested data. Raises RequestValidationError.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise _malformed("body", "is not UTF-8") from None
    head = _HEAD.match(text)
    if not head:
        raise _malformed("body", 'must be a JSON object: {"candidates": [...]}')
    position, strings, decoder = head.end(), list[str](), json.JSONDecoder()
    is_last = text[position : position + 1] == "]"
    position += is_last
    while not is_last:
        if text[position : position + 1] != '"':
            raise _malformed(f"body.candidates.{len(strings)}", "is not a text")
        if len(strings) == _MAX_STRINGS:
            raise _malformed("body.candidates", f"may have at most {_MAX_STRINGS:,} strings")
        try:
            string, position = decoder.raw_decode(text, position)
        except ValueError:
            raise _malformed(f"body.candidates.{len(strings)}", "is not a JSON text") from None
        strings.append(string)
        separator = _BETWEEN.match(text, position)
        if not separator:
            raise _malformed(f"body.candidates.{len(strings) - 1}", "must be followed by , or ]")
        position, is_last = separator.end(), separator[1] == "]"
    if not _TAIL.match(text, position):
        raise _malformed("body", 'may only contain "candidates"')
    try:
        return Candidates(candidates=strings)
    except ValidationError as error:
        [wrong] = error.errors()
        raise RequestValidationError([{**wrong, "loc": ("body", *wrong["loc"])}]) from None


def _malformed(location: str, why: str) -> RequestValidationError:
    return RequestValidationError([{"type": "body", "loc": location.split("."), "msg": why}])


CandidatesBody = Annotated[Candidates, Depends(read_candidates)]
"""The strings of a request's body."""
