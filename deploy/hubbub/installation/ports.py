"""Finds free ports of this machine, and gives each to one process at a time.

A port is claimed by a UDP socket with its number, held until the process ends. It does not hinder
listening by TCP; other users and containers on the same network see it; and it leaves nothing
behind.
"""

import secrets
import socket
from typing import Final

# Below those of outgoing connections (from 32768 on Linux, from 49152 elsewhere), which could take
# a port between our check and our start.
_FIRST: Final = 12_000
_LAST: Final = 32_000
_HERE: Final = "127.0.0.1"


def free_port(*used: int) -> int:
    """A free port of 127.0.0.1 that no other process is given while we live.

    `used` are offsets from it; the ports there are also free and ours.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST - max(used, default=0))
        if _claim([port, *(port + distance for distance in used)]):
            return port


def _claim(ports: list[int]) -> bool:
    """Claims all of these ports; returns False, and claims none, if one is taken."""
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
