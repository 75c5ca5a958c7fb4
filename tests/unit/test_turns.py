"""Expensive questions take turns, and past a few of them callers are sent away."""

import asyncio

import pytest

from hubbub.aggregator.query.cache import Turns
from hubbub.errors import ServiceUnavailable


async def test_expensive_questions_run_one_at_a_time_and_few_wait() -> None:
    turns, free = Turns(), asyncio.Event()
    running, most = 0, 0

    async def question() -> None:
        nonlocal running, most
        async with turns.turn():
            running += 1
            most = max(most, running)
            await free.wait()
            running -= 1

    tasks = [asyncio.create_task(question()) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ServiceUnavailable, match="try again in ten seconds"):
        await question()
    tasks.pop().cancel()
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(*tasks)
    assert most == 1
    await question()
