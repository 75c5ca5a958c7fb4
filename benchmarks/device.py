"""The stages on the device: randomize and seal."""

import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from benchmarks.measure import Row, rate
from benchmarks.own import own_hubbub, times
from hubbub.bundles import key_at
from hubbub.catalog import epoch_at, epoch_start
from hubbub.mechanisms import SystemBits, build
from hubbub.sealing.hpke import seal, seal_info

_RAPPOR = {"bits": 128, "hashes": 2, "cohorts": 64, "f": 0.5, "p": 0.25, "q": 0.75}
MECHANISMS: dict[str, tuple[dict[str, Any], int | float | str]] = {
    "rr": ({"epsilon": 1.0}, 1),
    "grr": ({"epsilon": 1.0, "categories": 128}, 5),
    "unary.sue": ({"epsilon": 1.0, "categories": 128}, 5),
    "unary.oue": ({"epsilon": 1.0, "categories": 128}, 5),
    "subset": ({"epsilon": 1.0, "categories": 128}, 5),
    "hadamard": ({"epsilon": 1.0, "categories": 128}, 5),
    "projective": ({"epsilon": 1.0, "categories": 128}, 5),
    "cms": ({"epsilon": 1.0, "hashes": 64, "width": 128}, "example.org"),
    "hcms": ({"epsilon": 1.0, "hashes": 64, "width": 128}, "example.org"),
    "local_hash": ({"epsilon": 1.0, "hashes": 64, "width": 128}, "example.org"),
    "rappor": (_RAPPOR, "example.org"),
    "mean.one_bit": ({"epsilon": 1.0, "low": 0, "high": 128}, 5.5),
    "mean.piecewise": ({"epsilon": 1.0, "low": 0, "high": 128}, 5.5),
    "mean.table": ({"epsilon": 1.0, "low": 0, "high": 128}, 5.5),
    "buckets": ({"epsilon": 1.0, "low": 0, "high": 128, "buckets": 128, "sampled": 8}, 5.5),
    "long.grr": ({"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 128}, 5),
    "long.hash": ({"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 128}, 5),
    "long.unary": ({"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 128}, 5),
    "wave": ({"epsilon": 1.0, "low": 0, "high": 128, "buckets": 128}, 5.5),
    "haar": ({"epsilon": 1.0, "low": 0, "high": 128, "buckets": 128}, 5.5),
    "rappor.basic": ({"categories": 128, "f": 0.5, "p": 0.25, "q": 0.75}, 5),
}


def randomize() -> Iterator[Row]:
    """One payload, in plain Python with coins from the system."""
    coins = SystemBits()
    for name, (parameters, value) in MECHANISMS.items():
        mechanism = build(name, **parameters)
        microseconds = 1e6 / rate(partial(times, 5000, mechanism.randomize, value, coins))
        floor = 1e6 / rate(lambda: times(5000, os.urandom, 176))
        yield Row(
            f"randomize, {name}, d = 128",
            f"{microseconds:.1f} us",
            f"one os.urandom {floor:.1f} us",
            microseconds / floor,
            "<= 25 us",
        )


def sealing() -> Iterator[Row]:
    """The sender's sealing beside the library's own."""
    with own_hubbub() as run:
        epoch = epoch_at(time.time(), "day")
        key = key_at(run.bundle.keys, epoch_start(epoch, "day"))
        if key is None:
            raise AssertionError("keys of today")
        info = seal_info("homepage", epoch)
        suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
        raw = rate(lambda: times(2000, suite.encrypt, bytes(18), key.half("x25519"), info))
        ours = rate(lambda: times(2000, seal, bytes(18), key.half("x25519"), info))
        yield Row(
            "seal, one core",
            f"{ours:,.0f}/s",
            f"library {raw:,.0f}/s",
            ours / raw,
            ">= .9",
            more=True,
        )
