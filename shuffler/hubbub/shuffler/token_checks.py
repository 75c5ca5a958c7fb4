"""Checks whether the issuer made a token for a report's stream and epoch, and whether it marks it.

PRIVACY: the key shows that a token was issued, but not to whom, since the signed value was blinded.
"""

from collections.abc import Sequence
from hmac import compare_digest
from typing import TYPE_CHECKING, NamedTuple

from hubbub.errors import BadParameter
from hubbub.errors.message_words import needs
from hubbub.tokens.token import TOKEN_BYTES, mark_of, nonce_of, token_info
from hubbub.wire.v1.report_pb2 import SealedReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.shuffler.stream_table import StreamTable


class Paid(NamedTuple):
    """A report with the token that goes with it: the token's nonce, and its mark of this report."""

    nonce: bytes
    mark: bytes
    sealed: bytes


class Redeemer:
    """Checks tokens with the issuer's key, in about a tenth of a millisecond each, in a thread."""

    def __init__(self, key: bytes) -> None:
        with needs("tokens need rbcl", "shuffler"):
            from hubbub.tokens import poprf  # noqa: PLC0415 only tokens need rbcl
        self._key = key
        self._evaluate: Callable[[bytes, bytes, bytes], bytes] = poprf.evaluate

    def are_paid(self, pairs: Sequence[tuple[SealedReport, bytes]]) -> list[bool]:
        """Whether each report's token is valid for it. Blocks: must run in a thread."""
        return [self._marks(report, token) for report, token in pairs]

    def _marks(self, report: SealedReport, token: bytes) -> bool:
        if len(token) != TOKEN_BYTES:
            return False
        nonce = nonce_of(token)
        output = self._evaluate(self._key, nonce, token_info(report.stream, report.epoch))
        return compare_digest(mark_of(output, report.sealed), token[len(nonce) :])


def refuse_untaken(table: "StreamTable", redeemer: Redeemer | None) -> None:
    """Raises BadParameter if streams need tokens and there is no key to check them."""
    needs = sorted(name for name, stream in table.streams.items() if stream.tokens)
    if needs and redeemer is None:
        raise BadParameter(
            f"stream {needs[0]!a} accepts only reports with a token, but --token-key "
            "named no key to check tokens at the start; give that of hubbub keys issuer, and "
            "restart"
        )
