"""Pages that report: where they are served, and what a test asks them."""

import http.server
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

from hubbub.errors import HubbubError
from tests.interfaces.tab import Tab
from tests.support import asking, web
from tests.support.development_server import Developing
from tests.support.waiting import eventually

FALSE_ALARM = 1e-6
OPEN = """
async (shuffler) => {
  const { open } = await import("/hubbub.js");
  window.client = await open({ bundle: "/app.hubbub", shuffler, holdSeconds: null });
}
"""
REPORT = """
async ([metric, value]) => {
  const said = client.report(metric, value);
  await client.settled();
  return said;
}
"""
# What a browser does whose disk, or whose quota for the origin, is full.
FULL = """
() => {
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...told) {
    if (window.full) throw new DOMException("full", "QuotaExceededError");
    return put.apply(this, told);
  };
  window.full = true;
}
"""


class Pages(Tab):
    """The pages of a browser that Playwright drives."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._page = context.new_page()

    def ask(self, command: str, **arguments: Any) -> Any:
        """As a driver of WebDriver does."""
        pages = self._context.pages
        match command:
            case "Navigate":
                self._page.goto(arguments["url"])
            case "GetWindowHandle":
                return str(pages.index(self._page))
            case "NewWindow":
                self._context.new_page()
                return {"handle": str(len(pages))}
            case "SwitchToWindow":
                self._page = pages[int(arguments["handle"])]
            case "CloseWindow":
                self._page.close()
        return None

    def evaluate(self, function: str, *arguments: Any) -> Any:
        """What a function of JavaScript, or its promise, comes to in the page."""
        return self._page.evaluate(function, *arguments)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        """With a header by which a sandboxed frame may load scripts from here."""
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_words: object) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A page's origin: browsers take this machine's for as safe as HTTPS."""
    with web.serving(partial(_Quiet, directory=str(folder))) as place:
        yield f"http://{place}/"


def door_of(up: Developing) -> str:
    """Where `hubbub up` takes reports over HTTP."""
    [address] = re.findall(r"over HTTP to +(\S+)", up.said)
    return str(address)


def tab_of(device: BrowserContext, origin: str, door: str) -> Page:
    """A tab in which `client` reports."""
    page = device.new_page()
    page.goto(origin)
    page.evaluate(OPEN, door)
    return page


def report(page: Page, value: str, metric: str = "theme") -> str:
    """What report() says, once it is kept."""
    return str(page.evaluate(REPORT, [metric, value]))


def counted(up: Developing, metric: str, reports: int) -> Any:
    """What is answered once so many reports of a metric are counted; then the law is balanced."""

    def answered() -> Any:
        answer = asking.estimate(up.endpoints, metric)
        return answer if answer.reports >= reports else None

    result = eventually(answered, although=(HubbubError,))
    assert result.reports == reports
    law = web.get(f"{up.endpoints.page}v1/status").json()
    assert law["balanced"], law
    return result
