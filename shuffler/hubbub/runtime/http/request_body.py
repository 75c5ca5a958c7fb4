"""Reads a request's body up to a limit."""

from hubbub.runtime.http.server import Receive


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Reads the whole body, whatever Content-Length says; None if it exceeds `max_bytes`.

    Raises:
        ConnectionError: the client has disconnected.
    """
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > max_bytes:
            return None
        more = message.get("more_body", False)
    return b"".join(parts)
