"""Models from pages of chromium: a page learns by the state that its shuffler's answer carries."""

import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import BrowserContext

from hubbub.installation.child_process import free_port
from hubbub.wire.v1.services_pb2 import SubmitRequest, SubmitResponse
from tests.support.node import ROOT, needs_node

KNOWN_ANSWERS = json.loads((ROOT / "tests/proofs/vectors/wire/asking.json").read_text("utf-8"))[
    "learning"
]
STATE: Final[str] = [step["with"] for step in KNOWN_ANSWERS["steps"] if step["step"] == "models"][2]
DAY: Final = 86_400
# Of devices each of which waits with a chance of .2 none does once in a hundred million.
MOST: Final = 80
# Devices of this browser, until one waits for a state; then what it said, sent and kept.
LEARN = """
async ([signed, seconds, most]) => {
  const { open } = await import("/hubbub.js");
  const bundle = new TextEncoder().encode(signed);
  for (let number = 0; number < most; number += 1) {
    const own = { app: `learner ${number}`, now: () => seconds, holdSeconds: null };
    const client = await open({ bundle, shuffler: location.origin, ...own });
    const said = client.learn("logistic1", { hours: 50, plan: "paid", age: 17 }, "left");
    if (said === "awaits_state") {
      const sent = await client.flush();
      const again = client.learn("logistic1", [50, "paid", 17], "left");
      const { metrics } = await client.ledger();
      const { spent, reports } = metrics.find(({ name }) => name === "logistic1");
      return { sent, again, clipped: client.clipped, spent, reports };
    }
    await client.close();
  }
  return null;
}
"""

pytestmark = needs_node


class _Shuffler(http.server.SimpleHTTPRequestHandler):
    """A page's origin, which takes reports and has the state of models."""

    def __init__(self, *arguments: object, requests: list[SubmitRequest], **more: object) -> None:
        self._taken = requests
        super().__init__(*arguments, **more)  # type: ignore[arg-type]  # passed on

    def log_message(self, *_words: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self._taken.append(SubmitRequest.FromString(body))
        answer = SubmitResponse(models=b"" if body else STATE.encode()).SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def shuffler(site: Path) -> Iterator[tuple[str, list[SubmitRequest]]]:
    requests: list[SubmitRequest] = []
    handler = partial(_Shuffler, requests=requests, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", requests
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_fetches_the_state_of_its_round_and_reports_once(
    device: BrowserContext, shuffler: tuple[str, list[SubmitRequest]]
) -> None:
    origin, requests = shuffler
    page = device.new_page()
    page.goto(origin)
    value = page.evaluate(
        LEARN, [KNOWN_ANSWERS["signed"], KNOWN_ANSWERS["start"] - 100 + 3 * DAY + 60, MOST]
    )
    assert value == {
        "sent": True,
        "again": "already_reported",
        "clipped": {"logistic1": 2},
        "spent": pytest.approx(4),
        "reports": 1,
    }
    # The one that asks for the state says nothing of which model, nor of whom.
    first_request, sent = requests
    assert first_request == SubmitRequest()
    assert [report.stream for report in sent.reports] == ["logistic1"]
