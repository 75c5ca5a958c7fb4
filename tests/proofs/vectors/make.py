"""Makes known answers anew: `python -m tests.proofs.vectors.make NAME ...`; without a name, all.

A change in them is a wire break, but for the last digit of a float, which is the machine's.

They are made by the code under test, so they prove that nothing changed, not that it is right;
that it is right is proven in tests/proofs by enumeration.
"""

import json
import sys
from pathlib import Path
from typing import Any

from hubbub.mechanisms import REGISTRY, KeyedBits, Totals, build

HERE = Path(__file__).parent
KEY = b"known answers need known coins!!"
PARAMETERS: dict[str, dict[str, Any]] = {
    "rr": {"epsilon": 1.0},
    "grr": {"epsilon": 1.0, "categories": 300},
    "unary.sue": {"epsilon": 1.0, "categories": 11},
    "unary.oue": {"epsilon": 1.0, "categories": 11},
    "subset": {"epsilon": 1.0, "categories": 11},
    "hadamard": {"epsilon": 1.0, "categories": 300},
    "projective": {"epsilon": 1.0, "categories": 30},
    "cms": {"epsilon": 1.0, "hashes": 3, "width": 12},
    "hcms": {"epsilon": 1.0, "hashes": 3, "width": 16},
    "local_hash": {"epsilon": 1.0, "hashes": 3, "width": 12},
    "mean.one_bit": {"epsilon": 1.0, "low": -5, "high": 20},
    "mean.piecewise": {"epsilon": 1.0, "low": -5, "high": 20, "steps": 40},
    "mean.table": {"epsilon": 1.1, "low": -5, "high": 20},
    "buckets": {"epsilon": 1.0, "low": -5, "high": 20, "buckets": 10, "sampled": 4},
    "long.grr": {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 300},
    "long.hash": {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 300},
    "long.unary": {"epsilon": 1.0, "permanent_epsilon": 2.0, "categories": 11},
    "wave": {"epsilon": 1.0, "low": -5, "high": 20, "buckets": 20},
    "haar": {"epsilon": 1.0, "low": -5, "high": 20, "buckets": 20},
    "tree": {"epsilon": 1.0, "bits": 12, "cells": 64, "hashes": 2},
    "pairs": {"epsilon": 1.0, "sizes": (3, 4, 2)},
    "privset": {"epsilon": 0.5, "categories": 11, "most": 2},
    "vector.codes": {"epsilon": 2.0, "dimensions": 3, "words": 8, "books": 4, "max_length": 2.0},
    "rappor": {"bits": 12, "hashes": 2, "cohorts": 3, "f": 0.5, "p": 0.25, "q": 0.75},
    "rappor.basic": {"categories": 11, "f": 0.5, "p": 0.25, "q": 0.75},
}
# Of mechanisms that are built in more ways than one, beside those above: named in folder `more`.
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "more/pairs.three": ("pairs", {"epsilon": 1.0, "sizes": (3, 4, 2, 2), "ways": 3}),
    "more/pairs.all": ("pairs", {"epsilon": 6.0, "sizes": (3, 4, 2, 2), "ways": 4}),
    "more/mean.table.fine": ("mean.table", {"epsilon": 5.37, "low": -5, "high": 20}),
    "more/mean.table.small": ("mean.table", {"epsilon": 0.1, "low": -5, "high": 20}),
    "more/tree.beginnings": (
        "tree",
        {"epsilon": 1.0, "bits": 24, "cells": 64, "hashes": 2, "beginnings": ["ex", "exam", "日"]},
    ),
    "more/vector.codes.seed": (
        "vector.codes",
        {
            "epsilon": 4.5,
            "dimensions": 3,
            "words": 200,
            "books": 2,
            "seed": "日本/3",
            "max_length": 3.7,
        },
    ),
}
VALUES: dict[str, list[Any]] = {
    "strings": ["", "a", "example.org", "日本"],
    "categories": [0, 1],
    "numbers": [-5, 0, 7.125, 20],
    # As long as can be, shorter, and none at all.
    "vectors": [[2.0, 0.0, 0.0], [0.5, -0.5, 0.25], [0.0, 0.0, 0.0]],
    # Bits: also as many as are told, and more.
    "sets": [0, 1, 0b11, 0b110_0000_1001],
}


def vector(name: str) -> dict[str, Any]:
    """Coins to payloads, payloads to cells, totals to estimates, and what must be refused."""
    name, parameters = MORE.get(name) or (name, PARAMETERS[name])
    mechanism = build(name, **parameters)
    values = VALUES["sets" if mechanism.FAMILY == "sets" else mechanism.VALUES]
    coins = KeyedBits(KEY)
    payloads = [(value, mechanism.randomize(value, coins)) for value in values for _ in range(4)]
    size, layout = mechanism.layout.payload_bytes, mechanism.layout
    totals = Totals(cells=[(7 * cell) % 50 + 60 for cell in range(layout.size)], reports=200)
    estimates = mechanism.estimate(totals)
    return {
        "provenance": "tests/proofs/vectors/make.py, hubbub 0.1.0; coins: KeyedBits of the key",
        "mechanism": name,
        "version": mechanism.VERSION,
        "parameters": parameters,
        "key": KEY.hex(),
        "privacy_loss": mechanism.privacy_loss(),
        "payloads": [
            {
                "value": value,
                "payload": payload.hex(),
                "cells": sorted(layout.cells(payload)),
            }
            for value, payload in payloads
        ],
        "totals": {"cells": list(totals.cells), "reports": totals.reports},
        "estimates": list(estimates.values),
        "variances": list(estimates.variances),
        "refused": ["", "00" * (size + 1), "ff" * size, "00" * (size - 1)],
    }


if __name__ == "__main__":
    for known in sys.argv[1:] or (*REGISTRY, *MORE):
        text = json.dumps(vector(known), indent=1, ensure_ascii=False) + "\n"
        (HERE / f"{known}.json").write_text(text, encoding="utf-8")
