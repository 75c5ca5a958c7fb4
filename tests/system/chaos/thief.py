"""A thief spends others' tokens on reports of its own, while they do: BUNDLE HOME SHUFFLER.

What it sends it keeps first, so that it knows of each, after any kill, what became of it.
"""

import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hubbub.bundles import Bundle, key_at, read_bundle
from hubbub.catalog import epoch_start
from hubbub.client import SealedReport, Transport, TryAgain, transport_to
from hubbub.mechanisms.random_bits import SystemBits
from hubbub.sealing.hpke import seal, seal_info
from hubbub.tokens.token import Minted
from tests.support.waiting import HANG_SECONDS
from tests.system.chaos.robbed_device import THEFTS, acknowledged, add_line, lines_of

SENT, ANSWERED = "thief.sent", "thief.answered"
_LOOK_SECONDS = 0.005


class Thief:
    """One process of it. home: where devices' loot is, and what it keeps."""

    def __init__(self, bundle: Bundle, home: Path, transport: Transport) -> None:
        self._bundle, self._home, self._transport = bundle, home, transport
        self._spent_nonces = {record["nonce"] for record in lines_of(home / SENT)}
        self._stolen = Counter((record["of"], record["stream"]) for record in lines_of(home / SENT))

    def steal(self) -> None:
        """Make a report for each token that is new here, as far as it steals any."""
        for loot in sorted(self._home.glob("*.loot")):
            for token in lines_of(loot):
                place = loot.stem, token["stream"]
                if token["nonce"] in self._spent_nonces or self._stolen[place] >= THEFTS:
                    continue
                self._spent_nonces.add(token["nonce"])
                if random.random() < 0.5:
                    self._stolen[place] += 1
                    add_line(self._home / SENT, {"of": loot.stem, **self._report(token)})

    def send(self) -> bool:
        """Send what has no answer yet: whether all of it has one now."""
        answered = {record["nonce"] for record in lines_of(self._home / ANSWERED)}
        for record in lines_of(self._home / SENT):
            if record["nonce"] in answered:
                continue
            sealed, token = bytes.fromhex(record["sealed"]), bytes.fromhex(record["token"])
            report = SealedReport(
                stream=record["stream"],
                epoch=record["epoch"],
                key_id=record["key"],
                sealed=sealed,
                token=token,
            )
            try:
                [why] = self._transport.submit([report], HANG_SECONDS).results
            except TryAgain:
                return False
            add_line(self._home / ANSWERED, {**acknowledged(report), "why": why})
        return True

    def _report(self, token: dict[str, Any]) -> dict[str, Any]:
        stream, epoch = token["stream"], token["epoch"]
        metric = self._bundle.streams[stream]
        key = key_at(self._bundle.keys, epoch_start(epoch, metric.epoch))
        assert key
        payload = metric.randomizer.randomize(0, SystemBits())
        sealed = seal(payload, key.half("x25519"), seal_info(stream, epoch))
        minted = Minted(bytes.fromhex(token["nonce"]), bytes.fromhex(token["output"]))
        return {
            "stream": stream,
            "epoch": epoch,
            "key": key.id,
            "nonce": token["nonce"],
            "sealed": sealed.hex(),
            "payload": payload.hex(),
            "token": minted.token(sealed).hex(),
        }


def open_thief(bundle_path: Path, home: Path, shuffler: str) -> Thief:
    bundle = read_bundle(bundle_path)
    return Thief(bundle, home, transport_to(shuffler, roots=bundle.roots))


def main() -> None:
    bundle_path, home, shuffler = sys.argv[1:]
    thief = open_thief(Path(bundle_path), Path(home), shuffler)
    while True:
        thief.steal()
        thief.send()
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
