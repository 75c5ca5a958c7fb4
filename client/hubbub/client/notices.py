"""A device's treatment of an operator's notice: it checks the signature and keeps the newest.

The notice comes with the answer to reports that were sent anyway: the device sends no request for
it.
"""

from hubbub.bundles import Notice, open_notice
from hubbub.client.state.contract import State
from hubbub.errors import NoticeRefused


def kept_notice(signed: bytes, operator: bytes) -> Notice | None:
    """Returns a state's notice; None without one, or if the bundle's operator did not sign it."""
    try:
        return open_notice(signed, operator=operator) if signed else None
    except NoticeRefused:
        return None


def hear(signed: bytes, operator: bytes, state: State) -> None:
    """Stores a notice that came with an answer, unless a newer one is stored.

    PRIVACY: a shuffler cannot make the device use an older notice, or one of its own.

    Raises:
        NoticeRefused: this operator did not sign it; the stored notice stays.
        StateUnusable: it cannot be stored.
    """
    notice = open_notice(signed, operator=operator)

    def follows(raw_notice: bytes) -> bool:
        former = kept_notice(raw_notice, operator)
        return former is None or notice.follows(former)

    state.heed(signed, follows)
