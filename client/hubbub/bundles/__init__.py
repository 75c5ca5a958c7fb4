"""Floor 2. Bundles: files that an operator signs for devices, opened and checked.

A bundle is the file that an app ships: a catalog, opening keys and promises. Notices and states of
models accompany it, and a transparency log proves that every device gets the same.
"""

from hubbub.bundles.bundle import Bundle
from hubbub.bundles.metric_promise import Promise
from hubbub.bundles.opening_keys import OpeningKey, OpeningKeyPublic, key_at
from hubbub.bundles.reduction_notice import Notice, open_notice
from hubbub.bundles.signed_bundle import open_bundle, read_bundle

__all__ = [
    "Bundle",
    "Notice",
    "OpeningKey",
    "OpeningKeyPublic",
    "Promise",
    "key_at",
    "open_bundle",
    "open_notice",
    "read_bundle",
]
