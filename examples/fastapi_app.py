"""A FastAPI app that reports which theme its pages are asked in.

uvicorn examples.fastapi_app:app      with app.hubbub here, or HUBBUB_BUNDLE set
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Cookie, FastAPI

from hubbub.client import Client


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for as long as the app runs; at the end it sends what it can, off the loop."""
    async with Client.from_bundle() as client:
        app.state.hubbub = client
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def page(theme: Annotated[str, Cookie()] = "system") -> str:
    """A page."""
    app.state.hubbub.report("theme", theme)  # no I/O: right in the event loop
    return f"a page in {theme}"
