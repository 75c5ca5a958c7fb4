"""The whole protocol in one process, on the shipping code: python protocol.py."""

import secrets
from collections import Counter
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.aggregator.ingest.fold import fold, well_formed
from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import answer
from hubbub.mechanisms import SystemBits, Totals, build
from hubbub.sealing.hpke import open_sealed, seal, seal_info

THEMES = ["light", "dark", "system"]


def protocol(values: Sequence[str], listed: Sequence[str], epsilon: float) -> Answer:
    """From what people hold to what is known of all of them, and of nobody."""
    mechanism = build("grr", epsilon=epsilon, categories=len(listed))
    private, info = X25519PrivateKey.generate(), seal_info("theme", 20_000)  # stream and epoch
    reports = []
    for value in values:  # each on its own device
        payload = mechanism.randomize(listed.index(value), SystemBits())
        reports.append(seal(payload, private.public_key(), info))
    secrets.SystemRandom().shuffle(reports)  # the shuffler: sees neither payloads nor people
    opened = [open_sealed(report, private, info) for report in reports]  # the aggregator
    payloads = np.frombuffer(b"".join(opened), dtype=np.uint8).reshape(len(opened), -1)
    payloads = payloads[well_formed(mechanism.layout, payloads)]
    totals = Totals(cells=fold(mechanism.layout, payloads).tolist(), reports=len(payloads))
    return answer(mechanism, totals, listed)


if __name__ == "__main__":
    held = secrets.SystemRandom().choices(THEMES, [6, 3, 1], k=10_000)
    for one in protocol(held, THEMES, epsilon=1.0).values:
        print(f"{one.value}: {one.low:,.0f} to {one.high:,.0f}, truly {Counter(held)[one.value]:,}")
