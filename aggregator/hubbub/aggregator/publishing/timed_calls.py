"""Calls over HTTP that end in time: a timeout of a socket is of each of its steps, this of all."""

import http.client
import socket
import ssl
import threading
import urllib.request
from contextlib import suppress
from typing import Any


class TimedCalls(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opens http and https for urllib, with a deadline from the connection to the last header.

    Raises:
        TimeoutError: it was over; whoever answers a byte a second is not waited for.
    """

    def __init__(self, seconds: float) -> None:
        context = _Deferred(ssl.PROTOCOL_TLS_CLIENT)
        context.load_default_certs()
        super().__init__(context=context)
        self._seconds = seconds

    def do_open(self, http_class: Any, req: urllib.request.Request, **given: Any) -> Any:
        """One call, as urllib makes it."""
        made: list[http.client.HTTPConnection] = []
        over, done = threading.Event(), threading.Event()

        def connection(host: str, **more: Any) -> http.client.HTTPConnection:
            made.append(http_class(host, **more))
            return made[-1]

        def watch() -> None:
            while not done.wait(self._seconds):  # again, for a connection that was made late
                over.set()
                for one in made:
                    if one.sock is not None:
                        with suppress(OSError):  # not that of TLS, whose own shutdown waits
                            socket.socket.shutdown(one.sock, socket.SHUT_RDWR)

        late = f"no whole answer within {self._seconds:g} s"
        threading.Thread(target=watch, daemon=True).start()
        try:
            response = super().do_open(connection, req, **given)
        except (OSError, http.client.HTTPException):
            if over.is_set():
                raise TimeoutError(late) from None
            raise
        finally:
            done.set()
        if over.is_set():  # what was cut off may look whole
            response.close()
            raise TimeoutError(late)
        return response


class _Deferred(ssl.SSLContext):
    """Shakes hands with the first byte that is sent: by then the socket is known, to be ended."""

    def wrap_socket(self, sock: socket.socket, *args: Any, **given: Any) -> ssl.SSLSocket:
        return super().wrap_socket(sock, *args, **{**given, "do_handshake_on_connect": False})
