"""Makes the known answers of directions anew: `python -m tests.proofs.vectors.directions`.

What every SDK must work out to the last digit, for payloads of vectors and models hang on it. A
change in them is a wire break.
"""

import json
from math import fsum
from typing import Any, Final

from hubbub.mechanisms import KeyedBits
from hubbub.mechanisms.direction_pool import book, steps, top_sums
from hubbub.mechanisms.gradient import ModelKind, gradient, place, to_judge
from hubbub.mechanisms.portable_floats import density, falling, length, normal_tail
from hubbub.mechanisms.vector_codes import VectorCodes
from tests.proofs.vectors.make import HERE, KEY

FILE: Final = HERE / "more" / "directions.json"
_POOL: Final[dict[str, Any]] = {
    "epsilon": 1.0,
    "dimensions": 4,
    "words": 32,
    "books": 1000,
    "seed": "a seed",
}
_VECTORS: Final = (
    [1.0, 0.0, 0.0, 0.0],
    [0.5, -0.5, 0.5, 0.5],
    [0.1, 0.7, -0.7, 0.1],
    [3e-162, 4e-162, 0.0, 0.0],
    [5e-324, 0.0, 0.0, 0.0],
    [1.0, 1e-17, -1e-300, 5e-324],
)
_SUMS: Final[tuple[list[float], ...]] = (
    [],
    [1.0],
    [0.1] * 10,
    [1e16, 1.0, -1e16],
    [1e300, 1.0, -1e300, 1e-300],
    [1.0, 2.0**-53],
    [1.0, 2.0**-53, 2.0**-1074],
    [1.0 + 2.0**-52, 2.0**-53, -(2.0**-200)],
    [1.0, -(2.0**-54), -(2.0**-200)],
    [2.0**53, 1.0, 1e-9],
    [3.0, -3.0],
    [0.3, -0.1, -0.2],
)


# Columns, the label, the centre and the weights of people whose scores are small, large and equal.
_PEOPLE: Final[tuple[tuple[ModelKind, list[float], float, list[float], list[float]], ...]] = (
    ("logistic", [0.3, 1.0, 0.0], 1.0, [0.5, 0.25, 1 / 3], [0.1, -0.7, 2.0, 0.05]),
    ("logistic", [0.0, 0.0, 1.0], 0.0, [0.1, 0.2, 0.3], [-70.0, 3.0, -40.0, 9.0]),
    ("linear", [1 / 7, 0.9], 0.35, [0.6, 0.1], [0.2, -0.3, 0.4]),
    ("ridge", [1.0, 0.0], 1.0, [0.0, 1.0], [0.01, 0.02, 0.9]),
    ("softmax", [0.2, 0.9], 2.0, [0.5, 0.5], [0.1, -0.2, 0.05, 0.7, 0.3, -0.4]),
    ("softmax", [0.2, 0.9], 0.0, [0.5, 0.5], [0.0] * 6),
    ("softmax", [1.0], 3.0, [0.1], [90.0, -7.0, 1.0, 55.0, 0.25, -0.125]),
)


def known_answers() -> dict[str, Any]:
    """Steps, words, payloads, how many words are near, and the floats that all of it hangs on.

    gradients: what people tell of themselves to models before it is randomized.
    """
    codes, coins = VectorCodes(**_POOL), KeyedBits(KEY)
    near = [
        (
            VectorCodes(epsilon=epsilon, dimensions=dimensions, words=words, books=1),
            epsilon,
            dimensions,
            words,
        )
        for epsilon in (2.0**-10, 0.1, 0.5, 1.0, 2.83, 4.29, 8.0, 16.0)
        for dimensions, words in ((2, 2), (3, 5), (16, 64), (64, 100), (1001, 512), (8, 1024))
    ]
    sums, squares = zip(*top_sums(40), strict=True)
    return {
        "provenance": "tests/proofs/vectors/directions.py, hubbub 0.2.0",
        "steps": list(steps()),
        "book": book("a seed", 7, 4, 5),
        "parameters": _POOL,
        "key": KEY.hex(),
        "payloads": [
            [vector, codes.randomize(vector, coins).hex()] for vector in _VECTORS for _ in range(4)
        ],
        "near": [
            {
                "epsilon": epsilon,
                "dimensions": dimensions,
                "words": words,
                "near": code.near,
                "loss": code.privacy_loss(),
            }
            for code, epsilon, dimensions, words in near
        ],
        "sums": [{"numbers": numbers, "sum": fsum(numbers)} for numbers in _SUMS],
        "floats": [
            {
                "x": x,
                "falling": falling(x),
                "density": density(x),
                "above": normal_tail(x),
                "length": length([x, 1 / 3, -x]),
            }
            for x in (0.0, 1e-9, 0.1, 0.5, 1.0, 1.99, 2.0, 3.3, 7.96, 8.0)
        ],
        "gradients": [
            {
                **dict(zip(("kind", "columns", "label", "centre", "weights"), row, strict=True)),
                "place": place(row[1]),
                "gradient": gradient(*row),
                "to_judge": to_judge(*row),
            }
            for row in _PEOPLE
        ],
        "top": {"words": 40, "sums": sums, "squares": squares},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(known_answers(), ensure_ascii=False) + "\n", encoding="utf-8")
