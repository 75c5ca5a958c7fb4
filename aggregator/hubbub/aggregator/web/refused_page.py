"""HTML pages for errors: what is wrong, and what to do next."""

from html import escape
from typing import Final
from urllib.parse import quote

from starlette.responses import HTMLResponse

from hubbub.errors.printable import visible

HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>hubbub: {heading}</title>
<link rel="icon" href="/static/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/style.css">
</head>
<body>
"""
"""The beginning of a page without scripts."""
_BODY: Final = """<header class="top">
<a class="brand" href="/"><img src="/static/favicon.svg" alt="" width="24" height="24">hubbub</a>
</header>
<main id="main" aria-busy="false">
<h1>{heading}</h1>
<div class="state"><p>{said}</p>
<p class="actions"><a class="button" href="{to}">{next}</a></p></div>
</main>
</body>
</html>
"""
_DOWN: Final = 503


def refused_page(status: int, message: str, return_path: str) -> HTMLResponse:
    """Returns the page after a refused login; a successful login continues to `return_path`."""
    heading = "Nobody can log in for now" if status == _DOWN else "Not logged in"
    text = visible(message)
    if text.startswith(("the ", "this ")):  # and no name of a person
        text = text[0].upper() + text[1:]
    login_link = f"/login?anew=true&amp;to={quote(return_path, safe='')}"
    return _page(status, heading, text, login_link, "Log in again")


def lost_page(path: str) -> HTMLResponse:
    """Returns the page for a path that does not exist."""
    message = f"Nothing is at {visible(path)} here: the link may be old or incomplete"
    return _page(404, "No such page", message, "/", "All metrics")


def _page(status: int, heading: str, message: str, return_path: str, label: str) -> HTMLResponse:
    page = (HEAD + _BODY).format(
        heading=heading, said=escape(message) + ".", to=return_path, next=label
    )
    return HTMLResponse(page, status, {"cache-control": "no-store"})
