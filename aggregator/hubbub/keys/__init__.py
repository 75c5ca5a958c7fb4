"""Floor 2. Key files: the operator's for signing, the aggregator's for opening; rotation."""

from hubbub.keys.opening_keys import read_opening_keys, read_public_keys, write_new_keys
from hubbub.keys.operator import read_operator_key

__all__ = [
    "read_opening_keys",
    "read_operator_key",
    "read_public_keys",
    "write_new_keys",
]
