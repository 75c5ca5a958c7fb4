"""Free ports of this machine, given to one process at a time.

A port is claimed by a UDP socket of its number, which its process holds until it ends. That hinders
nobody who listens there by TCP; it lies where the port lies, so that another user, and another
container on the same network, see it too; and nothing of it is left behind.
"""

import secrets
import socket
from typing import Final

# Below those that the system hands out to outgoing connections (32768 on Linux, 49152 elsewhere):
# one of them may take such a port between our looking and our listening.
_FIRST: Final = 12_000
_LAST: Final = 32_000
_HERE: Final = "127.0.0.1"


def free_port(*beside: int) -> int:
    """A port of 127.0.0.1 that nothing listens on, and that nobody else is given while we live.

    beside: so many above it are such ports too, and as much ours.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST - max(beside, default=0))
        if _claim([port, *(port + distance for distance in beside)]):
            return port


def _claim(ports: list[int]) -> bool:
    """Whether all of these are ours now; if not, none is."""
    claims: list[socket.socket] = []
    try:
        for port in ports:
            claims.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            claims[-1].bind((_HERE, port))
            with socket.socket() as probe:
                probe.bind((_HERE, port))
    except OSError:
        for claim in claims:
            claim.close()
        return False
    for claim in claims:
        claim.detach()  # it is closed with the process
    return True
