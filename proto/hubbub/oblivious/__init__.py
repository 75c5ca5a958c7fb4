"""Floor 1. Oblivious HTTP: a relay passes on requests that it cannot read (RFC 9458, RFC 9292).

`encapsulation` is imported separately: it needs pyhpke, which a device without a relay lacks.
"""

from hubbub.oblivious.binary_http import (
    Request,
    Response,
    read_request,
    read_response,
    write_request,
    write_response,
)
from hubbub.oblivious.key_config import (
    GATEWAY_PATH,
    KEYS_TYPE,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    key_config,
    read_config,
)

__all__ = [
    "GATEWAY_PATH",
    "KEYS_TYPE",
    "REQUEST_TYPE",
    "RESPONSE_TYPE",
    "Request",
    "Response",
    "key_config",
    "read_config",
    "read_request",
    "read_response",
    "write_request",
    "write_response",
]
