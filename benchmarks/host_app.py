"""A small web app to be timed.

python -m benchmarks.host_app METRIC BUNDLE STATE_DIR SHUFFLER, or with none at all: none
"""

import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hubbub.client import Client

_WORK = 300  # rows that a page of this app puts together


def serve(report: Callable[[], object]) -> None:
    """Answer until killed; the first line said is the port."""

    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one write a page, or the network's own waiting is what is measured
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            report()
            body = json.dumps([{"row": n, "square": n * n} for n in range(_WORK)]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "none":
        serve(lambda: None)
    else:
        metric, bundle, folder, shuffler = sys.argv[1:]
        client = Client.from_bundle(
            bundle, state_dir=folder, shuffler=shuffler, insecure=True, hold_seconds=1
        )
        serve(lambda: client.report(metric, "light"))
