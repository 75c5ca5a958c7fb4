"""A relay: who dials it reaches the service from another address of this machine."""

import asyncio
from contextlib import suppress

_CHUNK = 65_536


class Relay:
    """Carries bytes between `address`, a free port of this machine, and a port of it.

    source: the address of 127.0.0.0/8 that the service sees.
    """

    def __init__(self, port: int, source: str) -> None:
        self._port = port
        self._source = source
        self._carrying: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Its address."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """End everything on it."""
        self._server.close()
        for task in list(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        there = None
        with suppress(OSError, asyncio.CancelledError):
            back, there = await asyncio.open_connection(
                "127.0.0.1", self._port, local_addr=(self._source, 0)
            )
            ways = [_carry(reader, there), _carry(back, writer)]
            tasks = [asyncio.create_task(way) for way in ways]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for member in tasks:
                    member.cancel()
        for end in (writer, there):
            if end:
                end.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
