"""Requests tokens from an issuer: one POST, by this device or by its app's server."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from hubbub.client.transport.contract import TryAgain
from hubbub.client.transport.http_exchange import HttpExchange
from hubbub.errors.tls_authorities import trusting

PATH: Final = "/v1/tokens"
_TYPE: Final = "application/protobuf"

AskIssuer = Callable[[bytes, float], bytes]
"""Takes a request to the issuer, within so many seconds; what it answers. Raises TryAgain."""


def ask_issuer(address: str, key: str, roots: str | None) -> AskIssuer:
    """Returns a function that asks an issuer with an account's key; `roots` beside the system's."""
    parts = urlsplit(address)
    trust = trusting(roots, system=True) if parts.scheme == "https" else None
    place = f"{parts.netloc}{parts.path.rstrip('/')}{PATH}"

    def ask(request: bytes, timeout_seconds: float) -> bytes:
        exchange = HttpExchange(place, _TYPE, trust)
        try:
            answer = exchange.post(request, timeout_seconds, {"Authorization": f"Bearer {key}"})
        finally:
            exchange.close()
        if answer.status != HTTPStatus.OK or answer.type != _TYPE:
            raise TryAgain(f"issuer_http_{answer.status}")
        return answer.body

    return ask


def ask_by_app(ask: Callable[[bytes], bytes]) -> AskIssuer:
    """Returns a function that requests tokens through the app, whose server knows its users."""

    def ask_app(request: bytes, _timeout_seconds: float) -> bytes:
        try:
            answer = ask(request)
        except Exception as error:
            raise TryAgain(f"app_{type(error).__name__.lower()}") from error
        if not isinstance(answer, bytes):
            raise TryAgain("app_no_bytes")
        return answer

    return ask_app
