"""Parameters that a question does not have: a slip in a name would be answered as if not asked.

Those it has are what the OpenAPI document says, so that both are always the same.
"""

from difflib import get_close_matches
from typing import Final

from fastapi import Request

from hubbub.errors import BadParameter

_QUESTIONS: Final = "/v1/"
_LONGEST: Final = 40


async def check_parameters(request: Request) -> None:
    """Raises BadParameter for one in the address of a question that the document does not have."""
    path: str = request.scope["route"].path
    if not path.startswith(_QUESTIONS):
        return
    operation = request.app.openapi()["paths"][path][request.method.lower()]
    told = operation.get("parameters", ())
    known = sorted(one["name"] for one in told if one["in"] == "query")
    for name in request.query_params:
        if name not in known:
            raise BadParameter(_unknown(name, known))


def _unknown(name: str, known: list[str]) -> str:
    said = f"there is no parameter {name[:_LONGEST]!a} here"
    if not known:
        return f"{said}: this path takes none; leave it out"
    near = get_close_matches(name, known, n=1)
    meant = f'; did you mean "{near[0]}"?' if near else "."
    return f"{said}{meant} There are {', '.join(known)}"
