"""HTTP as tests speak it: httpx2 without its five seconds: a service may still be loading."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from socketserver import BaseRequestHandler
from typing import Final

import httpx2

from tests.support.waiting import HANG_SECONDS

# Trusts nobody: each call would else read all of the system's authorities, 20 ms of a processor.
# Who speaks TLS passes the authority of the service under test.
_NOBODY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

delete: Final = partial(httpx2.delete, timeout=HANG_SECONDS, verify=_NOBODY)
get: Final = partial(httpx2.get, timeout=HANG_SECONDS, verify=_NOBODY)
options: Final = partial(httpx2.options, timeout=HANG_SECONDS, verify=_NOBODY)
post: Final = partial(httpx2.post, timeout=HANG_SECONDS, verify=_NOBODY)
put: Final = partial(httpx2.put, timeout=HANG_SECONDS, verify=_NOBODY)
request: Final = partial(httpx2.request, timeout=HANG_SECONDS, verify=_NOBODY)


@contextmanager
def serving(handler: Callable[..., BaseRequestHandler]) -> Iterator[str]:
    """HOST:PORT of a stranger that handles each connection so, until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # It looks for its end every so many seconds.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
