"""A request's body, read as far as it may be."""

from hubbub.runtime.http.server import Receive


async def read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """All of it, whatever the request's head said of its length; None for one that is too large.

    Raises:
        ConnectionError: who sends it has gone.
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
