"""Scrape: the server of `/metrics`, in threads, where who is slow keeps nobody else from asking.

prometheus_client's own shakes hands where it accepts: one silent connection would be its end.
"""

import logging
import ssl
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket
from socketserver import ThreadingTCPServer
from typing import Any, Final

from prometheus_client import CollectorRegistry, MetricsHandler

from hubbub.runtime.tls import TlsFolder, names_of, role_names

_log: Final = logging.getLogger("hubbub.runtime")

# From the connection to the end of the answer; the law is waited for 5 of them.
_SECONDS: Final = 15.0
# So many connections at once; for one more the oldest gives way.
_CONNECTIONS: Final = 64


def serve_scrapes(
    host: str,
    port: int,
    registry: CollectorRegistry,
    tls: TlsFolder | None,
    callers: Collection[str],
) -> Callable[[], None]:
    """Serve a registry from now on; answers what reads the certificates anew.

    callers: with `tls`, the roles whose certificate lets in.

    Raises:
        OSError: the address is taken.
        KeysUnusable: the certificates cannot be read; so does what reads them anew.
    """
    context = None if tls is None else tls.server_context(mutual=True)
    names = names_of(callers)

    class Handler(MetricsHandler):
        def parse_request(self) -> bool:
            # Half a request of a connection that we ended looks like a whole one.
            return super().parse_request() and server.has(self.client_address)

        def do_GET(self) -> None:  # noqa: N802 named by http.server
            if isinstance(self.connection, ssl.SSLSocket) and names.isdisjoint(
                role_names(self.connection.getpeercert() or {})
            ):
                self.send_error(403, "not for the role of this certificate")
                return
            super().do_GET()

    Handler.registry = registry
    server = _Server(host, port, Handler, context)
    threading.Thread(target=server.serve_forever, name="hubbub-metrics", daemon=True).start()

    def renew() -> None:
        server.context = None if tls is None else tls.server_context(mutual=True)

    return renew


@dataclass(slots=True)
class _Open:
    since: float
    line: socket

    def end(self) -> None:
        """From another thread: what waits on it wakes up."""
        with suppress(OSError):  # it has ended by itself
            socket.shutdown(self.line, SHUT_RDWR)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, host: str, port: int, handler: type[MetricsHandler], context: ssl.SSLContext | None
    ) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.context = context
        self._handler: Callable[..., object] = handler
        self._open: dict[Any, _Open] = {}  # by the address and port of the peer
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take one connection."""
        if len(self._open) >= _CONNECTIONS:
            oldest = self._open.pop(next(iter(list(self._open)), None), None)
            if oldest:
                oldest.end()
        self._open[client_address] = _Open(time.monotonic(), request)
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve it, in a thread of its own."""
        connection = self._open.get(client_address)
        if connection is None:
            return  # it gave way already
        try:
            if self.context:
                connection.line = self.context.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False
                )
                connection.line.do_handshake()
            self._handler(connection.line, client_address, self)
        finally:
            self._open.pop(client_address, None)
            connection.line.close()

    def has(self, client_address: Any) -> bool:
        """Whether a connection was not ended yet."""
        return client_address in self._open

    def service_actions(self) -> None:
        """Twice a second and after every connection: end those that take too long."""
        overdue = time.monotonic() - _SECONDS
        for address, connection in list(self._open.items()):
            if connection.since < overdue:
                self._open.pop(address, None)
                connection.end()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 as its base has it
        """A fault of ours is named by its kind; those of strangers do not fill our log."""
        error = sys.exception()
        if error and not isinstance(error, OSError):
            _log.error("metrics failed: %s", type(error).__name__)
