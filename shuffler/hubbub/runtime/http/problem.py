"""A problem: an error over HTTP, as RFC 9457 has it."""

import json
from http import HTTPStatus
from typing import Any, Final

PROBLEM_TYPE: Final = "application/problem+json"


def problem(status: HTTPStatus, why: str, **more: Any) -> bytes:
    """Its body. more: further members, or others than it has by itself."""
    members = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": why}
    return json.dumps({**members, **more}).encode()
