"""Hash positions of many candidate strings, with numpy. Tests compare mechanisms' `positions`."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.strings.design import Places, once
from hubbub.mechanisms.hashing import WORDS, digest, encoded
from hubbub.mechanisms.rappor import Rappor
from hubbub.mechanisms.sketch import Sketch

# Digests held at a time, 16 bytes each.
_DIGESTS: Final = 1 << 20


def bloom_places(mechanism: Rappor, candidates: Sequence[str]) -> Places:
    """Flat cells of each candidate's Bloom bits in all cohorts, padded as for `Design`."""
    bits, cohorts, hashes = mechanism.bits, mechanism.cohorts, mechanism.hashes
    blocks = -(-hashes // WORDS)
    seeds = [2 * cohort + block for cohort in range(cohorts) for block in range(blocks)]
    first = np.arange(cohorts, dtype=np.int32)[:, None] * bits
    parts = [np.empty((0, cohorts * hashes), dtype=np.int32)]
    for words in _words(candidates, seeds):
        positions = words.reshape(len(words), cohorts, blocks * WORDS)[:, :, :hashes] % bits
        cells = (positions.astype(np.int32) + first).reshape(len(words), -1)
        parts.append(once(cells, cohorts * bits))
    return np.concatenate(parts)


def sketch_buckets(mechanism: Sketch, candidates: Sequence[str]) -> npt.NDArray[np.int64]:
    """Bucket of each candidate under each function; shape (candidates, hashes)."""
    parts = [
        words[:, :, 0].astype(np.int64) % mechanism.width
        for words in _words(candidates, range(mechanism.hashes))
    ]
    return np.concatenate(parts)


def _words(candidates: Sequence[str], seeds: Sequence[int]) -> Iterator[npt.NDArray[np.uint32]]:
    """Four hash words per candidate and seed, for a group of candidates at a time."""
    step = max(1, _DIGESTS // len(seeds))
    for first in range(0, len(candidates), step):
        some = [encoded(candidate) for candidate in candidates[first : first + step]]
        digests = b"".join([digest(string, seed) for string in some for seed in seeds])
        yield np.frombuffer(digests, dtype="<u4").reshape(len(some), len(seeds), WORDS)
