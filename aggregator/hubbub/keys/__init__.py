"""Floor 2. Keys in files: an operator signs by one, the aggregator opens by others; rotation."""

from hubbub.keys.opening_keys import read_opening_keys, read_public_keys, write_new_keys
from hubbub.keys.operator import read_operator_key

__all__ = [
    "read_opening_keys",
    "read_operator_key",
    "read_public_keys",
    "write_new_keys",
]
