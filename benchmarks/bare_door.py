"""The server of the HTTP door with nothing behind it: python -m benchmarks.bare_door PORT TLS."""

import asyncio
import sys
from pathlib import Path

import uvloop

from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor, Receive, Scope, Send
from hubbub.runtime.tls import TlsFolder


async def _hello(scope: Scope, receive: Receive, send: Send) -> None:
    del scope
    await receive()
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}
    )
    await send({"type": "http.response.body", "body": b"hello"})


async def _serve(port: int, tls: Path) -> None:
    door = HttpDoor(
        f"127.0.0.1:{port}",
        _hello,
        tls=TlsFolder(tls, "shuffler"),
        connections=OpenConnections(max_per_address=0),
    )
    await door.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
