"""Number of reports that support each listed value, by numpy from millions of cells."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hubbub.mechanisms.hadamard import WalshHadamard
from hubbub.mechanisms.projective_geometry import HashPool, Incidence

Integers = npt.NDArray[np.int64]


def supports_of(mechanism: Any, cells: Integers, value_count: int | None = None) -> Integers:
    """Number of reports that support each of the first `value_count` values, via the transform."""
    value_count = mechanism.categories if value_count is None else value_count
    return _SUPPORTS[type(mechanism.transform)](mechanism.transform, cells, value_count)[
        :value_count
    ]


def walsh_hadamard(cells: Integers) -> Integers:
    """Product of the Hadamard matrix with a vector of 2**k numbers, or with each row of many."""
    source, target = cells.copy(), np.empty_like(cells)
    size, step = cells.shape[-1], 1
    while step < size:
        # Sums to the first half and differences to the second: every pass reads and writes in
        # order, and after the last one each stands where it belongs.
        half = size // 2
        np.add(source[..., 0::2], source[..., 1::2], out=target[..., :half])
        np.subtract(source[..., 0::2], source[..., 1::2], out=target[..., half:])
        source, target = target, source
        step *= 2
    return source


def _incidence_supports(space: Incidence, cells: Integers, value_count: int) -> Integers:
    """For every hyperplane, the sum of `cells` over its points.

    Recursion: S(x), for x of the last m coordinates, sums over points that begin there and are
    orthogonal to x. A coordinate in front adds the points (1, y) with <y, w> = -c for x = (c, w).
    """
    s, t = space.prime, space.dimensions
    sums = np.zeros(1, dtype=np.int64)
    end = len(cells)
    for m in range(t - 1):
        size = s**m
        leading_cells = cells[end - size : end]
        end -= size
        minus_one = _minus_one_sums(leading_cells, s, m)
        rows = np.empty((s, size), dtype=np.int64)
        rows[1:] = minus_one[_multiples(s, m, _inverses(s))]
        rows[0] = leading_cells.sum() - rows[1:].sum(axis=0)
        sums = (rows + sums).reshape(-1)
    # The first coordinate is 1 for most points, which come first; those with 0 1 in front come
    # next, then 0 0 1, ...
    leading_cells, size = cells[:end], s ** (t - 1)
    minus_one = _minus_one_sums(leading_cells, s, t - 1)
    answer = [minus_one + sums]
    if value_count > size:
        zeros = np.concatenate([np.arange(s**m, 2 * s**m) for m in range(t - 2, -1, -1)])
        others = sum(minus_one[_times_modulo(zeros, s, t - 1, c)] for c in range(1, s))
        answer.append(leading_cells.sum() - others + sums[zeros])
    return np.concatenate(answer)[:value_count]


def _pool_supports(pool: HashPool, cells: Integers, value_count: int) -> Integers:
    """For every value, the sum over all functions of its bucket's count."""
    s = pool.prime
    remainders, digits = np.arange(value_count, dtype=np.int64), []
    for _ in range(pool.dimensions):
        digits.append(remainders % s)
        remainders //= s
    supports = np.zeros(value_count, dtype=np.int64)
    for function, counts in enumerate(cells.reshape(-1, s)):
        coefficients = reversed(pool.vector(function))
        hashed = sum(c * digit for c, digit in zip(coefficients, digits, strict=True))
        supports += counts[hashed % s]
    return supports


def _minus_one_sums(leading_cells: Integers, s: int, m: int) -> Integers:
    """For every w of m coordinates: the sum over the y with <y, w> = -1 modulo s.

    It is the mean over c of root^c times the Fourier transform at -c w. For the multiples of a
    vector, that is again a transform, of the values at its multiples.
    """
    if not m:
        return np.zeros(1, dtype=np.int64)
    if m == 1:  # one y for every w but 0
        return np.append(0, leading_cells[s - _inverses(s)])
    if s == 2:  # noqa: PLR2004 then all is real
        odd_part: Integers = (leading_cells.sum() - walsh_hadamard(leading_cells)) // 2
        return odd_part
    spectrum = np.fft.fftn(leading_cells.reshape((s,) * m)).reshape(-1)
    firsts = np.concatenate([np.arange(s**place, 2 * s**place) for place in range(m)])
    lines = _times_modulo(firsts, s, m, np.arange(s, dtype=np.int64)[:, None])
    sums = np.zeros(s**m, dtype=np.int64)
    transforms = np.fft.fft(spectrum[lines], axis=0)[_inverses(s)]
    sums[lines[1:]] = np.rint(transforms.real / s).astype(np.int64)
    return sums


def _multiples(s: int, m: int, factors: Integers) -> Integers:
    """For each factor, the number of every vector of m digits modulo s, times the factor."""
    number = np.zeros((len(factors), 1), dtype=np.int64)
    for _ in range(m):
        digits = factors[:, None] * np.arange(s, dtype=np.int64) % s
        number = (number[:, :, None] * s + digits[:, None, :]).reshape(len(factors), -1)
    return number


@lru_cache(maxsize=16)  # a tree has many groups of one response
def _inverses(s: int) -> Integers:
    """Inverses of 1 to s - 1 modulo s."""
    return np.array([pow(c, -1, s) for c in range(1, s)], dtype=np.int64)


def _times_modulo(vectors: Integers, s: int, m: int, factor: int | Integers) -> Integers:
    """The numbers of `vectors`, multiplied by a factor, or each by all factors, modulo s."""
    number = np.zeros_like(vectors * factor)
    for place in range(m):
        number += vectors // s**place % s * factor % s * s**place
    return number


_SUPPORTS: Final[Mapping[type, Callable[[Any, Integers, int], Integers]]] = {
    # Row 0 belongs to no value.
    WalshHadamard: lambda _, cells, count: (
        (cells.sum() + walsh_hadamard(cells)[1 : count + 1]) // 2
    ),
    Incidence: _incidence_supports,
    HashPool: _pool_supports,
}
