"""The HTTP face's server, run beside the gRPC servers of the same process."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from uvicorn.config import Config

from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import make_app
from hubbub.aggregator.web.connection import HttpConnection
from hubbub.errors import ServiceUnavailable
from hubbub.runtime import Limiter
from hubbub.runtime.http.connections import OpenConnections
from hubbub.runtime.tls import is_loopback


class HttpServer:
    """The application on an address: on this machine plain, elsewhere with TLS and tokens.

    refusals: counts requests that were refused and connections that were ended, by reason.
    notice: what every page says first.

    Raises:
        ServiceUnavailable: away from this machine without TLS, or where everyone may ask.
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
                "--http-tokens FILE or --http-access FILE with who may ask, or listen on 127.0.0.1"
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
            tls.server_context(mutual=False)  # says what is wrong with the files, if anything is
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
            # Its errors hold what was sent, and its warnings are strangers'; the guard tells ours.
            log_level="critical",
            access_log=False,
            server_header=False,
            lifespan="off",  # nothing of ours begins or ends with it
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._address = address
        self._tls = tls
        self._config = config
        self._server = _Unsignalled(config)

    def renew(self) -> None:
        """Show who connects from now on what the folder holds now. Raises KeysUnusable."""
        if self._tls and self._config.ssl:
            self._tls.server_context(mutual=False)  # says what is wrong, if anything is
            self._config.ssl.load_cert_chain(*self._tls.pair)

    def allow(self, rate: float) -> None:
        """Change how many requests a second a caller may make."""
        self._limiter.allow(rate, _burst(rate))

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            ServiceUnavailable: the address is taken.
        """
        try:
            await self._server.serve()
        except SystemExit as error:  # how uvicorn says that it cannot listen
            raise ServiceUnavailable(
                f"cannot listen on {self._address}: it is in use or not ours; choose another"
            ) from error
        except asyncio.CancelledError:
            self._server.should_exit = True
            raise


def _burst(rate: float) -> int:
    return max(1, round(20 * rate))


class _Unsignalled(uvicorn.Server):
    """Leaves signals to the process, which stops everything in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
