"""Floor 1. Oblivious HTTP: a request that a relay passes on and cannot read (RFC 9458, RFC 9292).

`encapsulation` is not among these: it alone needs pyhpke, which a device without a relay has not.
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
