"""Pages that report: where they are served, and what a test asks them."""

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import BrowserContext, Page

from hubbub.cli.local.ports import free_port
from hubbub.errors import HubbubError
from hubbub.wire.v1.services_pb2 import Estimated
from tests.support import asking
from tests.support.developing import Developing
from tests.support.waiting import eventually

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


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A page's origin: browsers take this machine's for as safe as HTTPS."""
    port = free_port()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", port), partial(_Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def door_of(up: Developing) -> str:
    """Where `hubbub up` takes reports over HTTP."""
    [found] = re.findall(r"over HTTP to +(\S+)", up.said)
    return str(found)


def opened(device: BrowserContext, origin: str, door: str) -> Page:
    """A tab in which `client` reports."""
    page = device.new_page()
    page.goto(origin)
    page.evaluate(OPEN, door)
    return page


def report(page: Page, value: str, metric: str = "theme") -> str:
    """What report() says, once it is kept."""
    return str(page.evaluate(REPORT, [metric, value]))


def counted(up: Developing, metric: str, reports: int) -> Estimated:
    """What is answered once so many reports of a metric are counted; then the law is balanced."""

    def answered() -> Estimated | None:
        found = asking.estimate(up.endpoints, metric)
        return found if found.reports >= reports else None

    found = eventually(answered, although=(HubbubError,))
    assert found is not None
    assert found.reports == reports
    law = json.loads(up.run("status", "--format", "json"))
    assert law["balanced"], law
    return found
