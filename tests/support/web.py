"""HTTP as tests speak it: httpx2 without its five seconds: a service may still be loading."""

import ssl
from functools import partial
from typing import Any, Final

import httpx2

from tests.support.waiting import HANG_SECONDS

# Trusts nobody: each call would else read all of the system's authorities, 20 ms of a processor.
# Who speaks TLS passes the authority of the service under test.
_SETTINGS: Final[dict[str, Any]] = {
    "timeout": HANG_SECONDS,
    "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
}

delete: Final = partial(httpx2.delete, **_SETTINGS)
get: Final = partial(httpx2.get, **_SETTINGS)
options: Final = partial(httpx2.options, **_SETTINGS)
post: Final = partial(httpx2.post, **_SETTINGS)
put: Final = partial(httpx2.put, **_SETTINGS)
request: Final = partial(httpx2.request, **_SETTINGS)
