"""HTTP as tests speak it: httpx2 without its five seconds: a service may still be loading."""

from functools import partial
from typing import Final

import httpx2

from tests.support.waiting import HANG_SECONDS

delete: Final = partial(httpx2.delete, timeout=HANG_SECONDS)
get: Final = partial(httpx2.get, timeout=HANG_SECONDS)
options: Final = partial(httpx2.options, timeout=HANG_SECONDS)
post: Final = partial(httpx2.post, timeout=HANG_SECONDS)
put: Final = partial(httpx2.put, timeout=HANG_SECONDS)
request: Final = partial(httpx2.request, timeout=HANG_SECONDS)
