"""A FastAPI app that reports for its visitors: which theme each account chose.

uvicorn examples.fastapi_app:app      with app.hubbub here, or HUBBUB_BUNDLE set

Each account has a secret, limits and a consent of their own, in the Redis of REDIS_URL under a hash
with PERSONS_KEY (secrets.token_hex(32), for ever the same). Workers and hosts share them.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import redis
from fastapi import FastAPI

from hubbub.client import Client, Persons, RedisStore


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for as long as the app runs; at the end it sends what it can, off the loop."""
    store = RedisStore(redis.Redis.from_url(os.environ["REDIS_URL"]))
    persons = Persons(store, bytes.fromhex(os.environ["PERSONS_KEY"]))
    async with Client.from_bundle(persons=persons) as client:
        app.state.hubbub = client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/{account}/theme/{theme}")
def choose(account: str, theme: str) -> str:
    """An account's choice. Not async: it waits for the store, which a thread of FastAPI's does."""
    app.state.hubbub.person(account).report("theme", theme)
    return theme


@app.post("/{account}/no")
def refuse(account: str) -> str:
    """An account's no: what waits of it is not sent."""
    app.state.hubbub.person(account).disable()
    return "nothing is sent of you"
