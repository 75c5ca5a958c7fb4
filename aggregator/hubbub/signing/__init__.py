"""Floor 2. Signs bundles, notices and models for an operator, and keeps the log of them."""

from hubbub.signing.sign_bundle import sign_bundle, sign_notice
from hubbub.signing.stream_table import stream_table
from hubbub.signing.succession import grown, refuse_changes

__all__ = [
    "grown",
    "refuse_changes",
    "sign_bundle",
    "sign_notice",
    "stream_table",
]
