"""The application: combines routes, errors and pages."""

from collections import Counter
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from fastapi import Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles

from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.cache import Turns
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.api_page import api_page
from hubbub.aggregator.web.candidate_body import Candidates, saved_lists
from hubbub.aggregator.web.gauges import exposition
from hubbub.aggregator.web.guard import App, Guard, Message, Receive, Scope, Send, shared
from hubbub.aggregator.web.login_routes import logging_in
from hubbub.aggregator.web.mark_routes import marking
from hubbub.aggregator.web.parameters import Questions, needs
from hubbub.aggregator.web.problems import PROBLEMS, Problem, handle_problems
from hubbub.aggregator.web.query_routes import learned, questions
from hubbub.aggregator.web.release_routes import publishing
from hubbub.errors import BadParameter
from hubbub.errors.grammar import did_you_mean
from hubbub.errors.printable import visible
from hubbub.runtime.rpc.limiter import Limiter
from hubbub.runtime.version import VERSION

_QUESTIONS: Final = "/v1/"
_LONGEST: Final = 40
_PAGES: Final = {"/": "overview.html", "/metric": "metric.html", "/pipeline": "pipeline.html"}
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


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
        docs_url=None,  # its page loads scripts from elsewhere; ours, below, has none
        redoc_url=None,
        dependencies=[Depends(check_parameters)],
    )
    handle_problems(app)
    app.state.query = query
    app.state.body_turns = Turns()
    app.include_router(questions(tokens=access.asks, command=settings.command))
    app.include_router(saved_lists())
    app.include_router(marking())
    app.include_router(learned())
    app.include_router(publishing(releases, access))
    app.include_router(logging_in(access, _PAGES))
    requests: Counter[int] = Counter()

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        dependencies=[needs("viewer")],
        responses=PROBLEMS,
    )
    async def prometheus(query: Questions) -> Response:
        """Estimates as gauges with the bounds of their intervals, for Prometheus."""
        return Response(await exposition(query, requests), media_type=_TEXT)

    _tell_whether_it_serves(app, query)
    _serve_pages(app, notice)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]  # FastAPI's own way
    counted = _counted(app, requests)
    origins = settings.origins
    guarded = Guard(counted, access, limiter, _PAGES, origins, refusals=refusals, audit=audit)
    return shared(guarded, origins) if origins else guarded


def _tell_whether_it_serves(app: FastAPI, query: QueryEngine) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        """Returns the version of this process, if it runs."""
        return {"status": "serving", "version": VERSION}

    @app.get("/ready", responses={503: PROBLEMS[503]})
    async def ready() -> dict[str, str]:
        """Returns 200 if Redis answers, so that queries can be answered; otherwise 503."""
        await query.collected.check()
        return {"status": "ready"}


def _serve_pages(app: FastAPI, notice: str) -> None:
    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def documented() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()))

    pages = Path(str(files("hubbub.aggregator.web") / "pages"))
    app.mount("/static", StaticFiles(directory=pages))
    for path, page in _PAGES.items():
        app.add_api_route(
            path,
            _page(pages / page, notice),
            response_class=FileResponse,
            include_in_schema=False,
        )


def _page(path: Path, notice: str) -> Callable[[], Response]:
    """Route function that serves a page, with the notice first if there is one."""
    if not notice:
        return lambda: FileResponse(path)
    text_of = escape(visible(notice))
    aside = f'<aside class="notice" aria-label="What these numbers are">{text_of}</aside>\n<main'
    text = path.read_text(encoding="utf-8").replace("<main", aside, 1)
    return lambda: HTMLResponse(text)


def _document(app: FastAPI) -> dict[str, Any]:
    """Returns the OpenAPI document, with our Problem instead of FastAPI's validation error."""
    if not app.openapi_schema:
        openapi = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        schemas = openapi["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        for model in (Candidates, Problem):
            schemas[model.__name__] = model.model_json_schema()
        app.openapi_schema = openapi
    return app.openapi_schema


def _counted(app: App, requests: Counter[int]) -> App:
    """Returns the application, with its answers counted by status."""

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                requests[message["status"]] += 1
            await send(message)

        await app(scope, receive, sending)

    return counting


async def check_parameters(request: Request) -> None:
    """Raises BadParameter for a query parameter that the OpenAPI document does not contain."""
    path: str = request.scope["route"].path
    if not (request.query_params and path.startswith(_QUESTIONS)):
        return
    operation = request.app.openapi()["paths"][path][request.method.lower()]
    parameters = operation.get("parameters", ())
    names = sorted(parameter["name"] for parameter in parameters if parameter["in"] == "query")
    for name in request.query_params:
        if name not in names:
            raise BadParameter(_unknown(name, names))


def _unknown(name: str, names: list[str]) -> str:
    message = f"there is no parameter {name[:_LONGEST]!a} here"
    if not names:
        return f"{message}: this path has none; leave it out"
    return f"{message}{did_you_mean(name, names, otherwise='.')} There are {', '.join(names)}"
