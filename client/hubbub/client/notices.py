"""A device's treatment of an operator's notice: it checks the signature and keeps the newest.

The notice comes with the answer to reports that were sent anyway: the device sends no request for
it.
"""

from hubbub.bundles import Notice, open_notice
from hubbub.errors import NoticeRefused


def kept_notice(signed: bytes, operator: bytes) -> Notice | None:
    """Returns a state's notice; None without one, or if the bundle's operator did not sign it."""
    try:
        return open_notice(signed, operator=operator) if signed else None
    except NoticeRefused:
        return None
