"""HTTP errors as problems (RFC 9457) and as pages. They quote only names from the request."""

import json
from collections.abc import Mapping
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from hubbub.errors import HubbubError
from hubbub.errors.message_words import visible
from hubbub.query_results.error_status import status_of

_PAGE: Final = Path(__file__).with_name("problem.html").read_text("utf-8")
_DOWN: Final = 503


def refused_page(status: int, message: str, return_path: str) -> HTMLResponse:
    """Returns the page after a refused login; a successful login continues to `return_path`."""
    heading = "Nobody can log in for now" if status == _DOWN else "Not logged in"
    text = visible(message)
    if text.startswith(("the ", "this ")):  # and no name of a person
        text = text[0].upper() + text[1:]
    login_link = f"/login?anew=true&amp;to={quote(return_path, safe='')}"
    return _page(status, heading, text, login_link, "Log in again")


def _page(status: int, heading: str, message: str, return_path: str, label: str) -> HTMLResponse:
    page = _PAGE.format(heading=heading, reason=escape(message) + ".", to=return_path, next=label)
    return HTMLResponse(page, status, {"cache-control": "no-store"})


_TYPE: Final = "application/problem+json"
_RETRY_AFTER: Final = "10"  # seconds: a search takes as long


class Problem(BaseModel):
    """An error and its remedy.

    Args:
        title: kind of the error, for programs.
        login: name of the provider at /login, if the caller has to log in first.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    login: str | None = None


_TEXT_BY_STATUS: Final = {
    400: "An unknown or invalid parameter, such as a malformed range of epochs.",
    401: "No token or session, or one that is not known, not for this service, or has expired.",
    403: "The role has no permission; or a foreign page used a session.",
    404: "No such metric, or the caller may not see it.",
    409: "Too few reports for an answer, or a budget that is exhausted.",
    422: "Malformed.",
    429: "Too many requests; Retry-After gives the delay.",
    501: "The service lacks a library for this.",
    503: "Redis is unreachable, the time is uncertain, or too many expensive queries wait; "
    "Retry-After gives the delay.",
}
# The framework's errors whose messages are for programs.
_WRONG: Final = {
    "missing": "is missing",
    "string_type": "is not a text",
    "string_too_long": "may have at most {max_length} characters",
    "string_pattern_mismatch": "is invalid; see /openapi.json",
    "too_short": "must have at least {min_length} of them; leave it out for none",
    "too_long": "may have at most {max_length} of them",
    "extra_forbidden": "is not a field here; leave it out, see /openapi.json",
    "int_parsing": "is not a whole number",
    "float_parsing": "is not a number",
    "bool_parsing": "is neither true nor false",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "greater_than": "must be above {gt}",
    "less_than": "must be below {lt}",
    "literal_error": "must be {expected}",
    "model_attributes_type": "must be a JSON object, sent as application/json",
    "json_invalid": "is not JSON",
    "body": "{msg}",
}
_OTHERWISE: Final = "is malformed; see /openapi.json"
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": meaning,
        "content": {_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, meaning in _TEXT_BY_STATUS.items()
}
"""For the OpenAPI document: every question may end in one of them."""


def problem(
    status: int,
    title: str,
    detail: str,
    headers: dict[str, str] | None = None,
    *,
    login: str | None = None,
) -> Response:
    """Returns the HTTP response of an error."""
    model = Problem(title=title, status=status, detail=detail, login=login)
    body = model.model_dump(exclude_none=True)
    # ASCII, since an error may quote text that cannot be encoded.
    return Response(json.dumps(body), status, headers, media_type=_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Turns every error of this application into a problem."""

    @app.exception_handler(HubbubError)
    async def refused(_request: Request, error: HubbubError) -> Response:
        status = status_of(error)
        headers = (
            {"retry-after": _RETRY_AFTER} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
        )
        return problem(status, type(error).__name__, str(error), headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        problems = [_parameter_problem(wrong, request) for wrong in error.errors()]
        return problem(422, "Malformed", "; ".join(problems))

    @app.exception_handler(Exception)
    async def fault(_request: Request, _error: Exception) -> Response:
        return problem(500, "Fault", "a fault of ours; see our log")

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        headers, detail = dict(error.headers or {}), str(error.detail)
        if error.status_code == 405:  # noqa: PLR2004 method not allowed
            # The framework names the methods of one route; a path may have several.
            path = request.scope["path"]
            routes = [route for route in app.routes if isinstance(route, APIRoute)]
            matching = [route for route in routes if route.path_regex.match(path)]
            methods = {method for route in matching for method in route.methods or ()} or {"GET"}
            headers = {"allow": ", ".join(sorted(methods)).replace("GET", "GET, HEAD")}
            detail = "this path does not support this method; /openapi.json lists all requests"
        if error.status_code == 404:  # noqa: PLR2004 not found
            if "text/html" in request.headers.get("accept", ""):
                path = visible(request.url.path)
                message = f"Nothing is at {path} here: the link may be old or incomplete"
                return _page(404, "No such page", message, "/", "All metrics")
            detail = "this path does not exist; /openapi.json lists all requests"
        return problem(error.status_code, "NotServed", detail, headers)


def _parameter_problem(wrong: Mapping[str, Any], request: Request) -> str:
    """Returns the problem with one parameter, without the pattern that it failed to match."""
    place = wrong["loc"][:1] if wrong["type"] == "json_invalid" else wrong["loc"]
    name = ".".join(map(str, place)).removeprefix("query.").removeprefix("path.")
    text = _WRONG.get(wrong["type"], _OTHERWISE).format_map({**wrong, **wrong.get("ctx", {})})
    body = request.scope["route"].body_field
    fields = ", ".join(body.field_info.annotation.model_fields) if body and name == "body" else ""
    return f"{name}: {text}{fields and f'; its fields are {fields}'}"
