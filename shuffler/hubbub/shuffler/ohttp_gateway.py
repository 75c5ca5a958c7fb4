"""The gateway: decrypts requests that relays pass on (RFC 9458), for the HTTP service.

PRIVACY: only the relay knows who sent a request, and it cannot read it.
"""

import base64
from collections.abc import Callable, Collection
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.errors import KeysUnusable
from hubbub.oblivious.binary_http import Request, Response, read_request, write_response
from hubbub.oblivious.encapsulation import Gateway
from hubbub.oblivious.key_config import KEYS_TYPE
from hubbub.programs.text_files import read_list
from hubbub.shuffler.public_files import PublicBytes

UNKNOWN_KEY: Final = "https://iana.org/assignments/http-problem-types#ohttp-key"
"""What a client is told whose key is not ours any more (RFC 9458, section 5.2)."""
_ANSWER_STEP_BYTES: Final = 4 << 10
# Status, headers and text of a problem are smaller.
_PROBLEM_BYTES: Final = 1 << 10
# A refusal has at most 7 bytes, and the report that it concerns more than 56.
_REQUEST_TO_REFUSALS: Final = 8


class OhttpGateway:
    """A gateway and its keys. `relays` are networks exempt from the limits of one address."""

    def __init__(self, keys: Collection[X25519PrivateKey], relays: Collection[str] = ()) -> None:
        self._gateway = Gateway(list(keys))
        self.relays = [ip_network(relay) for relay in relays]
        self.public_keys = PublicBytes(self._gateway.configs, KEYS_TYPE.encode())

    def open(self, raw: bytes) -> tuple[Request, Callable[[Response, int], bytes]]:
        """Decrypts a request; returns it with a function that encrypts the answer.

        PRIVACY: the answer's length depends on the request's length, which the relay has seen, and
        on the size of whatever is public in answers (the second argument of the returned function):
        whether reports were refused, how many, or what was fetched does not change it.

        Raises:
            BadParameter: it is encrypted to a key that is not here.
            BadPayload: it is not an encapsulated request, or was altered.
        """
        content, seal = self._gateway.open(raw)

        def seal_padded(answer: Response, public_bytes: int) -> bytes:
            longest = _PROBLEM_BYTES + len(raw) // _REQUEST_TO_REFUSALS + public_bytes
            step = longest + -longest % _ANSWER_STEP_BYTES
            return seal(write_response(answer, padded_to=step))

        return read_request(content), seal_padded


def read_gateway_keys(path: Path) -> list[X25519PrivateKey]:
    """Reads the keys that `hubbub keys gateway` wrote. Raises KeysUnusable."""
    try:
        keys = [base64.b64decode(line, validate=True) for line in read_list(path)]
        return [X25519PrivateKey.from_private_bytes(key) for key in keys]
    except ValueError as error:
        if not path.exists():
            raise KeysUnusable(str(error)) from error
        raise KeysUnusable(f"{path}: no gateway's keys: hubbub keys gateway FOLDER") from error
