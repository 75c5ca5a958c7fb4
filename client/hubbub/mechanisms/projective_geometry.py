"""Projective geometry over a prime field, by which `projective` encodes reports and reads totals.

A point is a vector of t coordinates modulo a prime s, up to a factor; its canonical vector has a
first nonzero coordinate of 1. Points are numbered with those that begin with 1 first, then those
with 0, 1, and so on; within each kind by the coordinates that follow, as digits to the base s.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen


def primes(top: int) -> Iterator[int]:
    """All primes up to `top`, ascending."""
    sieve = bytearray([1]) * (top + 1)
    for number in range(2, top + 1):
        if sieve[number]:
            yield number
            sieve[number * number :: number] = bytes(len(sieve[number * number :: number]))


@frozen()
class Incidence:
    """Points and hyperplanes: point u lies on hyperplane v if their inner product is 0 modulo s.

    Args:
        prime: s.
        dimensions: t >= 2, the number of coordinates.
    """

    prime: int
    dimensions: int

    def __post_init__(self) -> None:
        if not (self.prime >= 2 and self.dimensions >= 2):  # noqa: PLR2004 a line at least
            raise BadParameter(f"no geometry over {self.prime} with {self.dimensions} coordinates")

    @property
    def points(self) -> int:
        """The number of points, and of hyperplanes."""
        return self._vectors(self.dimensions) // (self.prime - 1)

    @property
    def on_one(self) -> int:
        """The number of points on a hyperplane."""
        return self._vectors(self.dimensions - 1) // (self.prime - 1)

    @property
    def on_two(self) -> int:
        """The number of points on two hyperplanes at once."""
        return self._vectors(self.dimensions - 2) // (self.prime - 1)

    def vector(self, point: int) -> list[int]:
        """The canonical vector of a point, numbered in [0, points)."""
        zeros, size = 0, self.prime ** (self.dimensions - 1)
        while point >= size:
            point -= size
            size //= self.prime
            zeros += 1
        digits = []
        for _ in range(self.dimensions - 1 - zeros):
            point, digit = divmod(point, self.prime)
            digits.append(digit)
        return [*([0] * zeros), 1, *reversed(digits)]

    def point(self, vector: Sequence[int]) -> int:
        """The number of the point of a nonzero vector with coordinates in [0, s)."""
        zeros = next(i for i, coordinate in enumerate(vector) if coordinate)
        inverse = pow(vector[zeros], -1, self.prime)
        # Points with fewer zeros in front come first: s^(t-1) of them, s^(t-2), ...
        last = self.dimensions - zeros
        skipped = self.points - self._vectors(last) // (self.prime - 1)
        number = 0
        for coordinate in vector[zeros + 1 :]:
            number = number * self.prime + coordinate * inverse % self.prime
        return skipped + number

    def meets(self, plane: int, point: int) -> bool:
        """Whether the point lies on the hyperplane of this number."""
        return not self._product(self.vector(plane), self.vector(point)) % self.prime

    def sums(self, cells: Sequence[int], hyperplanes: int) -> list[int]:
        """For each of the first `hyperplanes`, the sum of `cells` over its points."""
        points = [(self.vector(point), count) for point, count in enumerate(cells) if count]
        return [
            sum(count for vector, count in points if not self._product(plane, vector) % self.prime)
            for plane in map(self.vector, range(hyperplanes))
        ]

    def _vectors(self, coordinates: int) -> int:
        """The number of nonzero vectors with so many coordinates."""
        return int(self.prime**coordinates) - 1

    @staticmethod
    def _product(first: Sequence[int], other: Sequence[int]) -> int:
        return sum(a * b for a, b in zip(first, other, strict=True))


@frozen()
class HashPool:
    """Public hash functions under which any two values collide with the same share.

    Values are vectors of t digits modulo a prime s, functions are the points of the space with t
    coordinates, and a value's bucket under a function is their inner product. Two values collide if
    the point lies on the hyperplane of their difference.

    Args:
        prime: s, the number of buckets.
        dimensions: t >= 2, the digits of a value.
    """

    prime: int
    dimensions: int

    @property
    def functions(self) -> int:
        """The number of functions."""
        return self._space.points

    @property
    def collisions(self) -> Fraction:
        """The share of the functions under which two values have the same bucket."""
        return Fraction(self._space.on_one, self._space.points)

    def vector(self, function: int) -> list[int]:
        """The coefficients of a function, the first digit's first."""
        return self._space.vector(function)

    def bucket(self, value: int, function: int) -> int:
        """The bucket in [0, s) of a value in [0, s^t)."""
        total = 0
        for coefficient in reversed(self.vector(function)):
            value, digit = divmod(value, self.prime)
            total += coefficient * digit
        return total % self.prime

    def sums(self, cells: Sequence[int], values: int) -> list[int]:
        """For each of the first `values`, the sum of its buckets' cells over all functions."""
        return [
            sum(cells[j * self.prime + self.bucket(value, j)] for j in range(self.functions))
            for value in range(values)
        ]

    @property
    def _space(self) -> Incidence:
        return Incidence(self.prime, self.dimensions)
