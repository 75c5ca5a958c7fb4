"""Releases over HTTP/JSON: for this machine, where whoever can connect may publish.

POST /v1/releases   make a release        GET /v1/releases   the record, and what is left
GET  /openapi.json  what there is         GET /health        whether it serves
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from hubbub.aggregator.releases import Answered, Ask, Releases
from hubbub.errors import (
    BadParameter,
    BatchTooSmall,
    BudgetExhausted,
    HubbubError,
    ServiceUnavailable,
    StoreUnavailable,
    UnknownMetric,
)
from hubbub.serving.tls import check_plain

__all__ = ["HttpFace", "make_app"]

_STATUS: Final = {
    UnknownMetric: 404,
    BadParameter: 400,
    BatchTooSmall: 409,
    BudgetExhausted: 409,
    StoreUnavailable: 503,
}
_PROBLEM: Final = "application/problem+json"


class AskBody(BaseModel):
    """What POST /v1/releases takes."""

    model_config = ConfigDict(extra="forbid")

    metric: str
    query: str = Field(description="count, histogram, mean or mode")
    value: str = Field(default="", description="the value to count")
    epochs: list[int] = Field(default=[], description="closed ones; none: the newest")
    purpose: str
    by: str


def make_app(releases: Releases) -> FastAPI:
    """The application."""
    app = FastAPI(title="hubbub releases", version="1")

    @app.exception_handler(HubbubError)
    async def refused(_request: Request, error: HubbubError) -> JSONResponse:
        status = next((s for kind, s in _STATUS.items() if isinstance(error, kind)), 500)
        return _problem(status, type(error).__name__, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> JSONResponse:
        # What is wrong and where, and not what was sent.
        wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        return _problem(422, "Malformed", "; ".join(wrong))

    @app.post("/v1/releases")
    async def release(ask: AskBody) -> dict[str, Any]:
        """Make a release; asked twice, the same answer, paid once."""
        asked = Ask(ask.metric, ask.query, ask.value, tuple(ask.epochs), ask.purpose, ask.by)
        return _answered(await releases.release(asked))

    @app.get("/v1/releases")
    async def record() -> dict[str, Any]:
        """What was released, by whom, and what each purpose has left this year."""
        entries, purposes = await releases.record()
        return {
            "records": [entry.told() for entry in entries],
            "purposes": [asdict(one) for one in purposes],
        }

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether it serves."""
        return {"status": "serving"}

    return app


class HttpFace:
    """The application on an address of this machine, run beside the gRPC servers.

    Raises:
        ServiceUnavailable: the address is not of this machine.
    """

    def __init__(self, address: str, releases: Releases) -> None:
        check_plain(address)
        host, _, port = address.rpartition(":")
        config = uvicorn.Config(
            make_app(releases), host=host, port=int(port), log_level="warning", access_log=False
        )
        self._address = address
        self._server = _Unsignalled(config)

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


class _Unsignalled(uvicorn.Server):
    """Leaves signals to the process, which stops everything in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _problem(status: int, title: str, detail: str) -> JSONResponse:
    """An error as RFC 9457 has it."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status_code=status, media_type=_PROBLEM)


def _answered(made: Answered) -> dict[str, Any]:
    return {
        **made.entry.told(),
        "values": [asdict(value) for value in made.entry.answer],
        "again": made.again,
        "epsilon_left": made.left.epsilon_left,
        "delta_left": made.left.delta_left,
    }
