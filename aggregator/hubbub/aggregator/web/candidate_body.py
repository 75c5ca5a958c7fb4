"""Request body with candidate strings: up to 32 MiB, read without blocking other requests."""

import asyncio
import json
import re
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError
from starlette.requests import ClientDisconnect

from hubbub.aggregator.web.parameters import Text, about

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
    about(request).candidates = len(body.candidates)
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
        raise _malformed("body", "may only contain candidates")
    try:
        return Candidates(candidates=strings)
    except ValidationError as error:
        [wrong] = error.errors()
        raise RequestValidationError([{**wrong, "loc": ("body", *wrong["loc"])}]) from None


def _malformed(location: str, why: str) -> RequestValidationError:
    return RequestValidationError([{"type": "body", "loc": location.split("."), "msg": why}])


CandidatesBody = Annotated[Candidates, Depends(read_candidates)]
"""The strings of a request's body."""
