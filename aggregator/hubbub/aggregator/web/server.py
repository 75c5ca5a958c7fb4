"""The HTTP server, run beside the gRPC servers of the same process.

Each connection must make progress: uvicorn has no limit for how long a request may take to arrive.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import h11
import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import make_app
from hubbub.errors import ServiceUnavailable
from hubbub.errors.addresses import is_loopback
from hubbub.runtime import Limiter
from hubbub.runtime.http.connections import OpenConnections, network_of


class HttpServer:
    """The application at an address: unencrypted on this machine, elsewhere with TLS and tokens.

    Args:
        refusals: counts refused requests and ended connections, by reason.
        notice: shown first on every page.

    Raises:
        ServiceUnavailable: on another address without TLS, or if everyone may query.
        KeysUnusable: the certificates cannot be read.
    """

    def __init__(
        self,
        settings: HttpSettings,
        query: QueryEngine,
        releases: Releases,
        *,
        access: Access | None = None,
        audit: AuditTrail | None = None,
        refusals: Counter[str] | None = None,
        notice: str = "",
    ) -> None:
        access, address, tls = access or Access(), settings.listen, settings.tls
        if not is_loopback(address) and (tls is None or not access.asks):
            raise ServiceUnavailable(
                f"{address} is not on this machine: give --http-tls FOLDER with certificates and "
                "--http-tokens FILE or --http-access FILE for access control, or listen on "
                "127.0.0.1"
            )
        host, _, port = address.rpartition(":")
        self._limiter = Limiter(settings.rate, _burst(settings.rate))
        app = make_app(
            query,
            releases,
            access,
            self._limiter,
            settings,
            refusals=refusals,
            audit=audit,
            notice=notice,
        )
        if tls:
            tls.server_context(mutual=False)  # raises if the files are invalid
        certificate, key = tls.pair if tls else (None, None)
        config = Config(
            app,
            host=host.strip("[]"),
            port=int(port),
            http=partial(HttpConnection, OpenConnections(settings.proxies, refusals)),  # type: ignore[arg-type]  # called, not subclassed
            ws="none",
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            log_config=None,
            # Its errors contain request data, and its warnings concern strangers.
            log_level="critical",
            access_log=False,
            server_header=False,
            lifespan="off",  # our resources do not depend on it
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._address = address
        self._tls = tls
        self._config = config
        self._server = _Unsignalled(config)

    def renew(self) -> None:
        """Loads the folder's certificates anew, for new connections. Raises KeysUnusable."""
        if self._tls and self._config.ssl:
            self._tls.server_context(mutual=False)  # raises if the address is invalid
            self._config.ssl.load_cert_chain(*self._tls.pair)

    def allow(self, rate: float) -> None:
        """Changes how many requests per second a caller may make."""
        self._limiter.allow(rate, _burst(rate))

    async def run(self) -> None:
        """Serves until cancelled.

        Raises:
            ServiceUnavailable: the address is taken.
        """
        try:
            await self._server.serve()
        except SystemExit as error:  # uvicorn exits in this way if it cannot listen
            raise ServiceUnavailable(
                f"cannot listen on {self._address}: it is in use or not ours; choose another"
            ) from error
        except asyncio.CancelledError:
            self._server.should_exit = True
            raise


def _burst(rate: float) -> int:
    return max(1, round(20 * rate))


class _Unsignalled(uvicorn.Server):
    """A uvicorn server that leaves signals to the process, which stops everything in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


# For a request's head, from the connection or the first byte; for its body, from the head's end.
_SECONDS: Final = {h11.IDLE: 10.0, h11.SEND_BODY: 60.0}
# Limit for reading the answer: ten million values over a slow line.
_ANSWER_SECONDS: Final = 300.0


class HttpConnection(H11Protocol):
    """One HTTP connection, with time limits."""

    def __init__(self, connections: OpenConnections, **options: Any) -> None:
        super().__init__(**options)
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._timed: Any = None  # the state of the request that the timer is for
        self.address = ""  # for IPv6 the network: each host has 2**64 addresses

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Counts the connection, and waits for a request."""
        super().connection_made(transport)
        self.address = network_of(self.client)
        self._connections.add(self, self.address)
        self._time(h11.IDLE, _SECONDS[h11.IDLE])

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection."""
        self._time(None, 0)
        self._connections.remove(self, self.address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses data of a request."""
        super().data_received(data)
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Refuses bytes that are not HTTP; they may be the rest of an answered request."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # there was an answer already
            self.transport.close()

    def on_response_complete(self) -> None:
        """Ends the time limit of a written answer, unless it is still unread."""
        super().on_response_complete()
        if not self.flow.write_paused:
            self._time(None, 0)  # uvicorn's own timer closes idle connections
        self._look(begun=False)

    def timeout_keep_alive_handler(self) -> None:
        """Closes an idle connection, although its last answer may be unread."""
        super().timeout_keep_alive_handler()
        self._time("end", _SECONDS[h11.IDLE])

    def pause_writing(self) -> None:
        """Starts a time limit: the answer is not read as fast as it is written."""
        super().pause_writing()
        self._time("answer", _ANSWER_SECONDS)
        self._look(begun=False)

    def resume_writing(self) -> None:
        """Ends that limit: the answer is read again."""
        super().resume_writing()
        self._time(None, 0)
        self._look(begun=False)

    def _look(self, *, begun: bool = True) -> None:
        """Sets the time limit by what the connection waits for; `begun`: a request has begun."""
        state = self.conn.their_state
        if state not in _SECONDS and not self._is_unread():
            self._connections.work(self, self.address)
            if self._timed in _SECONDS:
                self._time(None, 0)
            return
        if not self.transport.is_closing():
            self._connections.wait(self, self.address)
        if self._timed != state and (begun or state is h11.SEND_BODY) and not self._is_unread():
            self._time(state, _SECONDS[state])

    def _end(self) -> None:
        self._connections.refusals["too_slow"] += 1
        self.transport.abort()

    def _is_unread(self) -> bool:
        return self._timed in {"answer", "end"}

    def _time(self, what: Any, seconds: float) -> None:
        """Closes the connection after `seconds` without `what`; sets no limit if `what` is None."""
        if self._timer:
            self._timer.cancel()
        self._timed = what
        self._timer = self.loop.call_later(seconds, self._end) if what else None
