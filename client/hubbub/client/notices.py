"""What a device does with an operator's notice: it believes the signature, and keeps the newest.

It comes with the answer to reports that were sent anyway; the device asks nothing and
reveals nothing that it knows.
"""

from hubbub.bundles import Notice, open_notice
from hubbub.client.state.contract import State
from hubbub.errors import NoticeRefused


def kept_notice(signed: bytes, operator: bytes) -> Notice | None:
    """The notice in a state; None if there is none, or if the bundle's operator did not sign it."""
    try:
        return open_notice(signed, operator=operator) if signed else None
    except NoticeRefused:
        return None


def hear(signed: bytes, operator: bytes, state: State) -> None:
    """Keep a notice that came with an answer, unless a newer one is kept.

    PRIVACY: a shuffler that hands out an older one, or one of its own, changes nothing.

    Raises:
        NoticeRefused: it is none of this operator's; what is kept still holds.
        StateUnusable: it cannot be kept.
    """
    notice = open_notice(signed, operator=operator)

    def follows(raw_notice: bytes) -> bool:
        former = kept_notice(raw_notice, operator)
        return former is None or notice.follows(former)

    state.heed(signed, follows)
