"""A FastAPI app that reports about its own server: which database it is set up with.

uvicorn examples.fastapi_app:app      with app.hubbub here, or HUBBUB_BUNDLE set

To hubbub one state folder is one device. Reports of this app count servers, never visitors: a page
reports for its visitor itself, with the TypeScript SDK.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from hubbub.client import Client


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for as long as the app runs; at the end it sends what it can, off the loop."""
    async with Client.from_bundle() as client:
        app.state.hubbub = client
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def page() -> str:
    """A page."""
    # No I/O: right in the event loop. It counts once a server and epoch.
    app.state.hubbub.report("database", os.environ.get("DATABASE", "sqlite"))
    return "a page"
