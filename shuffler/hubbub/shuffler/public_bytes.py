"""Public files over HTTP: the same bytes for everybody, so that caches may keep them."""

import hashlib
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

# The same bytes for everybody, so that any cache may store them and they identify nobody.
_CACHE: Final = (b"cache-control", b"public, max-age=300")


@dataclass(frozen=True, slots=True)
class PublicBytes:
    """Bytes to hand out, which the shuffler does not read; `kind` is their media type."""

    content: bytes
    kind: bytes = b"application/octet-stream"
    tag: bytes = field(init=False)

    def __post_init__(self) -> None:
        tag = b'"' + hashlib.sha256(self.content).hexdigest()[:32].encode() + b'"'
        object.__setattr__(self, "tag", tag)

    def answer(self, etags: bytes) -> tuple[HTTPStatus, tuple[tuple[bytes, bytes], ...], bytes]:
        """Status, headers and body for a request with these tags in If-None-Match."""
        headers = ((b"etag", self.tag), _CACHE)
        tags = [tag.strip().removeprefix(b"W/") for tag in etags.split(b",")]
        if self.tag in tags:
            return HTTPStatus.NOT_MODIFIED, headers, b""
        return HTTPStatus.OK, (*headers, (b"content-type", self.kind)), self.content
