"""Problem details: errors over HTTP, as RFC 9457 defines them."""

import json
from http import HTTPStatus
from typing import Any, Final

PROBLEM_TYPE: Final = "application/problem+json"


def problem(status: HTTPStatus, why: str, **more: Any) -> bytes:
    """The JSON body of a problem; `more` adds or replaces members."""
    members = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": why}
    return json.dumps({**members, **more}).encode()
