"""The HTTP client of an aggregator with the standard library: documents, and refusals as errors."""

import json
import re
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from hubbub.errors import AccessRefused, BadParameter, HubbubError, ServiceUnavailable
from hubbub.errors.address_checks import is_local, server_parts, shown_url
from hubbub.errors.tls_authorities import authorities_in, pem_text, trusting
from hubbub.programs.http_calls import Answer, Calls, HttpCalls
from hubbub.programs.text_files import unreadable
from hubbub.query_results.error_status import error_named

_ACCESS: Final = (401, 403)
_MALFORMED: Final = (400, 422)
_NO_CONTENT: Final = 204
_TOKEN: Final = re.compile(r"[!-~]+")
# Pages of an answer that changes while they are read are no answer: they are asked for anew.
_ATTEMPTS: Final = 5
_CHANGES_MEANWHILE: Final = ("waiting", "withheld")
# OpenSSL's codes for a chain that ends at no trusted authority (X509_V_ERR_UNABLE_TO_GET_*,
# X509_V_ERR_*_SELF_SIGNED_*, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE).
_UNTRUSTED: Final = (2, 18, 19, 20, 21)
# The largest answer has a page of 10,000 strings of 255 bytes, and is a tenth of this.
_MAX_BYTES: Final = 64 << 20
# Names that `hubbub keys tls` gives the authorities of roles without HTTP.
_OTHER_AUTHORITIES: Final = tuple(
    f"hubbub {role} authority" for role in ("shuffler", "redis", "analyst")
)
Document = dict[str, Any]
MISSHAPEN: Final = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What JSON of another shape than an answer's makes of whoever reads it."""


def service_at(
    url: str,
    token: str | None,
    authority: str | Path | None,
    timeout_seconds: float,
    *,
    absent: str = "",
) -> "Service":
    """The service at an address; arguments and errors are those of `connect`.

    `absent` is the error's text if nothing listens; "" if the address may be wrong.
    """
    if not timeout_seconds > 0:
        raise BadParameter(f"timeout_seconds {timeout_seconds} is not above 0")
    parts = server_parts(url)
    if parts is None:
        raise ServiceUnavailable(
            f"{shown_url(url)} is not an address of a service: write http://HOST:PORT/, in "
            "ASCII and without a user"
        )
    token = (token or "").strip()  # a file of it ends with a line's end
    if token and not _TOKEN.fullmatch(token):
        raise BadParameter(
            "the token has an invalid character; copy the line that hubbub keys token printed"
        )
    if token and parts.scheme == "http" and not is_local(parts.hostname or ""):
        raise ServiceUnavailable(
            f"a token would be sent to {parts.hostname} unencrypted: write https://"
        )
    context = _trust(authority) if parts.scheme == "https" else None
    return Service(url.rstrip("/"), token, HttpCalls(timeout_seconds, context), absent)


def named_path(folder: str, name: str) -> str:
    """The path of a name in a folder of the service, such as "/v1/marks".

    Raises BadParameter if the name is empty or contains a slash.
    """
    if "/" in name:
        raise BadParameter(f"the name {name[:60]!a} has a /, which no name has: leave it out")
    if not name:
        raise BadParameter("the name is empty; write a name")
    return f"{folder}/{urllib.parse.quote(name, safe='')}"


def _trust(authority: str | Path | None) -> ssl.SSLContext:
    """A TLS context with the authorities in a file except other roles', or the system's."""
    if authority is None:
        return trusting(None)
    try:
        authorities = authorities_in(pem_text(Path(authority)))
        if not (blocks := [block for name, block in authorities if name not in _OTHER_AUTHORITIES]):
            raise ServiceUnavailable(
                f"{authority}: does not contain the aggregator's authority; give ca.pem"
            )
        return trusting("\n".join(blocks))
    except OSError as error:
        why = unreadable(error)
        raise ServiceUnavailable(f"{authority}: cannot be read as certificates: {why}") from error


class Service:
    """Requests documents from one service, and raises its refusals as errors."""

    def __init__(self, url: str, token: str | None, calls: Calls, absent: str = "") -> None:
        self.url = url
        self._headers = {"Accept": "application/json", "User-Agent": "hubbub"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._calls = calls
        self._absent = absent

    def pages(
        self,
        path: str,
        parameters: Mapping[str, Any],
        body: Document | None,
        rows: str,
        number: int,
    ) -> Document:
        """Joins all pages of an answer.

        Raises ServiceUnavailable if new reports changed the answer at every attempt.
        """

        def page(first: int) -> Document:
            return self.ask(path, {**parameters, "first": first, "number": number}, body)

        for _ in range(_ATTEMPTS):
            document = page(0)
            try:
                values, total = list(document[rows]), int(document["total"])
                while len(values) < total:
                    following = page(len(values))
                    if _besides(following, rows) != _besides(document, rows):
                        break
                    values += following[rows]
                    if len(following[rows]) < number:  # the last page; or it was cut
                        return {**document, rows: values}
                else:
                    return {**document, rows: values}
            except MISSHAPEN as error:
                raise self.alien(error) from error
        raise ServiceUnavailable(
            f"{self.url}: new reports change the answer while its pages are read; ask for closed "
            "epochs"
        )

    def ask(
        self,
        path: str,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        body: Document | None = None,
        *,
        method: str | None = None,
    ) -> Document:
        """The answer to one request; {} if it has no content.

        Args:
            path: percent-encoded path.
            parameters: query parameters; empty ones are left out.
            body: sent as JSON.
            method: None for GET without a body and POST with one.

        Raises:
            HubbubError: the service's refusal, as the error of its kind.
            ServiceUnavailable: no hubbub answers.
        """
        query_items = {
            name: value for name, value in parameters.items() if value not in ("", [], None)
        }
        url = f"{self.url}{path}?{urllib.parse.urlencode(query_items, doseq=True)}"
        headers, data = dict(self._headers), None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 http or https, as checked
        try:
            answer = self._calls.answer(request, _MAX_BYTES)
        except OSError as error:
            if self._absent and isinstance(error, ConnectionRefusedError):
                raise ServiceUnavailable(self._absent) from error
            raise self.alien(error) from error
        if answer.status == _NO_CONTENT:
            return {}
        if not answer.is_success:
            raise self._refusal(answer)
        try:
            document: Document = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise self.alien(error) from error
        return document

    def _refusal(self, answer: Answer) -> HubbubError:
        try:
            problem = json.loads(answer.body)
            detail, title = str(problem["detail"]), str(problem["title"])
        except MISSHAPEN:
            detail = (
                f"{self.url} answered {answer.status} {answer.reason}, but not as hubbub does; is "
                "the address right?"
            )
            title = ""
        if answer.status in _ACCESS:
            return AccessRefused(
                f"{detail}; connect(url, token=...), and HUBBUB_TOKEN for commands, need a token, "
                "which the service's operator makes: hubbub keys token"
            )
        kind = error_named(title) or (BadParameter if answer.status in _MALFORMED else HubbubError)
        return kind(detail)

    def alien(self, error: Exception) -> ServiceUnavailable:
        """The error for an answer that is not hubbub's: the system's cause, or a general one."""
        cause = (
            unreadable(error) if isinstance(error, OSError) else "not an answer to this question"
        )
        if isinstance(error, ssl.SSLCertVerificationError):
            cause = f"the certificate is refused: {error.verify_message}"
            if error.verify_code in _UNTRUSTED:
                return ServiceUnavailable(
                    f"{self.url}: {cause}; give its authority: --authority ca.pem, or "
                    "connect(url, authority=...)"
                )
        tls = " A port with TLS needs https://." if isinstance(error, ConnectionResetError) else ""
        return ServiceUnavailable(
            f"{self.url} does not answer as hubbub does: {cause}; is the address right?{tls}"
        )


def _besides(document: Document, rows: str) -> Document:
    """The fields that all pages of an answer have in common."""
    return {
        name: value
        for name, value in document.items()
        if name != rows and name not in _CHANGES_MEANWHILE
    }
