"""The application: combines routes, errors and pages; and the HTTP server that runs it."""

from collections import Counter
from collections.abc import Callable
from html import escape
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware

from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.cache import Turns
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.commands_to_copy import Reached
from hubbub.aggregator.web.guard import LARGEST_STRINGS_BYTES, Guard
from hubbub.aggregator.web.login_routes import LOGIN
from hubbub.aggregator.web.parameters import Candidates, Questions, needs
from hubbub.aggregator.web.problems import PROBLEMS, Problem, handle_problems
from hubbub.aggregator.web.prometheus_estimates import exposition
from hubbub.aggregator.web.publisher_routes import CANDIDATE_LISTS, MARKS, RELEASES
from hubbub.aggregator.web.query_routes import MODELS, QUESTIONS
from hubbub.errors import ServiceUnavailable
from hubbub.errors.address_checks import is_loopback
from hubbub.errors.message_words import visible
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import App, HttpDoor
from hubbub.runtime.http.timed_connection import TimeLimits
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.version import VERSION

_PAGES: Final = {"/": "overview.html", "/metric": "metric.html", "/pipeline": "pipeline.html"}
_OWN: Final = APIRouter()


def make_app(
    query: QueryEngine,
    releases: Releases,
    access: Access,
    limiter: Limiter,
    settings: HttpSettings,
    *,
    refusals: Counter[str] | None = None,
    audit: AuditTrail | None = None,
    notice: str = "",
) -> App:
    """Returns the application, behind its guard.

    `access` decides who may query which metrics, `limiter` limits requests by caller, `refusals`
    counts refusals by reason, `audit` gets a line for every query (None for no audit), and every
    page shows `notice` first.
    """
    app = FastAPI(
        title="hubbub",
        version="1",
        summary="Usage statistics under local differential privacy",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
    )
    handle_problems(app)
    app.state.query, app.state.releases, app.state.access = query, releases, access
    app.state.pages, app.state.body_turns = _PAGES, Turns()
    app.state.reached = Reached("", access.asks)
    app.state.requests = Counter[int]()
    for routes in (QUESTIONS, CANDIDATE_LISTS, MARKS, MODELS, RELEASES, LOGIN, _OWN):
        app.routes.extend(routes.routes)  # include_router builds each of them again, in .2 s
    pages = Path(str(files("hubbub.aggregator.web") / "pages"))
    app.mount("/static", StaticFiles(directory=pages))
    label = 'class="notice" aria-label="What these numbers are"'
    notice_html = f"<aside {label}>{escape(visible(notice))}</aside>\n" if notice else ""
    for path, page in _PAGES.items():
        text = (pages / page).read_text(encoding="utf-8").replace("<main", f"{notice_html}<main", 1)
        app.add_api_route(path, _page(text), response_class=HTMLResponse, include_in_schema=False)
    origins = settings.origins
    guarded = Guard(
        app=app,
        access=access,
        limiter=limiter,
        pages=_PAGES,
        origins=origins,
        refusals=Counter() if refusals is None else refusals,
        audit=audit,
        requests=app.state.requests,
    )
    if not origins:
        return guarded
    return CORSMiddleware(  # pages of these origins may read the answers
        guarded,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["authorization", "content-type"],
        expose_headers=["etag", "link", "retry-after"],
    )


def _page(text: str) -> Callable[[], Response]:
    return lambda: HTMLResponse(text)


@_OWN.get(
    "/metrics",
    response_class=PlainTextResponse,
    dependencies=[needs("viewer")],
    responses=PROBLEMS,
)
async def prometheus(request: Request, engine: Questions) -> Response:
    """Estimates as gauges with the bounds of their intervals, for Prometheus."""
    text = await exposition(engine, request.app.state.requests)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@_OWN.get("/health")
async def health() -> dict[str, str]:
    """Returns the version of this process, if it runs."""
    return {"status": "serving", "version": VERSION}


@_OWN.get("/ready", responses={503: PROBLEMS[503]})
async def check_redis(request: Request) -> dict[str, str]:
    """Returns 200 if Redis answers, so that queries can be answered; otherwise 503."""
    await request.app.state.query.collected.check()
    return {"status": "ready"}


@_OWN.get("/openapi.json", include_in_schema=False)
def document(request: Request) -> JSONResponse:
    """The OpenAPI document, with our Problem instead of FastAPI's validation error.

    FastAPI calls this in a thread: building takes .3 s, and the service counts batches meanwhile.
    """
    contents = request.app.openapi()
    schemas = contents["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in (Candidates, Problem):
        schemas[model.__name__] = model.model_json_schema()
    return JSONResponse(contents)


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
        super().__init__(address, app, tls=tls, connections=connections, limits=_LIMITS)

    def allow(self, rate: float) -> None:
        """Changes how many requests per second a caller may make."""
        self._limiter.allow(rate, _burst(rate))


def _burst(rate: float) -> int:
    return max(1, round(20 * rate))
