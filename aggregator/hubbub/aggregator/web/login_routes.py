"""Routes to log in and out at a provider, and to read the caller's rights."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from hubbub.aggregator.access.callers import SESSION, cookies_of
from hubbub.aggregator.access.sessions import LOGIN_SECONDS
from hubbub.aggregator.access.tokens import Role, Way
from hubbub.aggregator.web.parameters import Who, audit_facts, needs
from hubbub.aggregator.web.problems import PROBLEMS, problem, refused_page
from hubbub.errors import AccessRefused, HubbubError

# One per pending login: two tabs may log in at once.
_LOGIN: Final = f"{SESSION}-login-"
_STATE_LENGTH: Final = 10
_SEE_OTHER: Final = 303

To = Annotated[str, Query(description="the page to go on to")]
Anew = Annotated[bool, Query(description="make the provider ask for the user again")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Myself:
    """The caller.

    Args:
        way: how the caller is identified.
        role: the highest role; None for a caller without rights.
        until: end of the rights, in seconds since 1970; 0 for none.
    """

    name: str
    way: Way
    role: Role | None
    groups: tuple[str, ...]
    until: int


@dataclass(frozen=True, slots=True)
class LoggedOut:
    """The address to which the browser goes next: the provider's own logout, if it has one."""

    to: str


LOGIN: Final = APIRouter(responses=PROBLEMS)
"""The routes; the application's state has `access`, and `pages`, to which a login may continue."""


@LOGIN.get("/v1/me", dependencies=[needs("viewer")])
async def me(who: Who) -> Myself:
    """Returns the caller's name, role and expiry."""
    return Myself(name=who.name, way=who.way, role=who.role, groups=who.groups, until=who.until)


@LOGIN.get("/login", include_in_schema=False)
async def log_in(request: Request, to: To = "/", anew: Anew = False) -> Response:  # noqa: FBT002 of an address
    """Sends the browser to the provider."""
    to, login = _own_page(to, request.app.state.pages), request.app.state.access.login
    if login is None:
        return _no_login()
    try:
        url, begun, sealed = await login.begin(to, anew=anew)
    except HubbubError as error:
        return _refusal_page(request, error, to)
    answer = RedirectResponse(url, _SEE_OTHER)
    # Lax, since the provider's page sends the answer; the cookie has no other use.
    _keep(answer, _name(begun.state), sealed, LOGIN_SECONDS, strict=False)
    return answer


@LOGIN.get("/login/callback", include_in_schema=False)
async def answered(request: Request) -> Response:
    """Takes the provider's answer."""
    login, parameters = request.app.state.access.login, dict(request.query_params)
    if login is None:
        return _no_login()
    name, return_path = _name(parameters.get("state", "")), "/"
    try:
        begun = login.started_login(_cookie(request, name), parameters.get("state", ""))
        return_path = begun.to
        caller, sealed = await login.finish(begun, parameters)
    except HubbubError as error:
        return _forget(_refusal_page(request, error, return_path), name)
    request.scope["state"]["caller"] = caller  # for the audit
    answer = RedirectResponse(return_path, _SEE_OTHER)
    _keep(answer, SESSION, sealed, login.oidc.session_seconds)
    return _forget(answer, name)


@LOGIN.post("/logout", dependencies=[needs("viewer")])
async def log_out(request: Request, response: Response) -> LoggedOut:
    """Ends a session at every aggregator; the returned address ends it at the provider."""
    login, cookie = request.app.state.access.login, _cookie(request, SESSION)
    logout_url = await login.end(cookie) if login and cookie else None
    _forget(response, SESSION)
    return LoggedOut(logout_url or "/")


def _no_login() -> Response:
    return problem(404, "NotServed", "this service has no login: --http-access names no provider")


def _refusal_page(request: Request, error: HubbubError, return_path: str) -> Response:
    audit_facts(request).why = str(error)[:300]
    return refused_page(403 if isinstance(error, AccessRefused) else 503, str(error), return_path)


def _own_page(return_path: str, pages: Collection[str]) -> str:
    """Returns the requested page if it is ours, otherwise the first; never a foreign address."""
    parts = urlsplit(return_path)
    if parts.scheme or parts.netloc or parts.path not in pages or "\\" in return_path:
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _cookie(request: Request, name: str) -> str:
    return cookies_of(request.headers.get("cookie", "")).get(name, "")


def _name(state: str) -> str:
    state_start = state[:_STATE_LENGTH]
    return _LOGIN + (state_start if state_start.isalnum() else "none")


def _keep(answer: Response, name: str, sealed: str, seconds: int, *, strict: bool = True) -> None:
    answer.set_cookie(
        name,
        sealed,
        max_age=seconds,
        path="/",
        secure=True,
        httponly=True,
        samesite="strict" if strict else "lax",
    )


def _forget(answer: Response, name: str) -> Response:
    answer.delete_cookie(name, path="/", secure=True, httponly=True, samesite="strict")
    return answer
