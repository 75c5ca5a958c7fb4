"""The HTTP server for analysts, run beside the gRPC server of the same process."""

from collections import Counter
from math import inf
from typing import Final

from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import make_app
from hubbub.aggregator.web.guard import LARGEST_STRINGS_BYTES
from hubbub.errors import ServiceUnavailable
from hubbub.errors.addresses import is_loopback
from hubbub.runtime.http.connections import OpenConnections
from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.http.timed_connection import TimeLimits
from hubbub.runtime.rpc.limiter import Limiter

# A list of strings may be long, and ten million values take their time over a slow line.
_LIMITS: Final = TimeLimits(body=60.0, answer=300.0)
# The longest list, and other bodies beside it.
_BODIES_BYTES: Final = LARGEST_STRINGS_BYTES + (8 << 20)


class HttpServer(HttpDoor):
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
        connections = OpenConnections(
            settings.proxies,
            refusals,
            bodies_bytes=_BODIES_BYTES,
            answers_bytes=inf,  # a table may have any size, and its reader has a token
        )
        super().__init__(
            address,
            app,
            tls=tls,
            connections=connections,
            limits=_LIMITS,
        )

    def allow(self, rate: float) -> None:
        """Changes how many requests per second a caller may make."""
        self._limiter.allow(rate, _burst(rate))


def _burst(rate: float) -> int:
    return max(1, round(20 * rate))
