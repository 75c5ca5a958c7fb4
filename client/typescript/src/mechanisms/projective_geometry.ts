/**
 * Projective geometry over a prime field: `projective` sends its points, and `long.hash` hashes
 * with them.
 *
 * A point is a vector of t coordinates modulo a prime s, up to a factor. Points are numbered as in
 * `client/hubbub/mechanisms/projective_geometry.py`. All numbers here stay below 2**53.
 */

/** All primes up to `top`, ascending. */
export function primes(top: number): number[] {
  const primesUpTo: number[] = [];
  for (let number = 2; number <= top; number += 1) {
    if (!primesUpTo.some((prime) => prime * prime <= number && number % prime === 0))
      primesUpTo.push(number);
  }
  return primesUpTo;
}

/** Points and hyperplanes. prime: s. dimensions: t >= 2, the number of coordinates. */
export class Geometry {
  /** The number of points, which is also the number of hyperplanes. */
  readonly points: number;
  /** The number of points on a hyperplane. */
  readonly onOne: number;
  /** The number of points on the intersection of two hyperplanes. */
  readonly onTwo: number;

  constructor(
    readonly prime: number,
    readonly dimensions: number,
  ) {
    [this.points, this.onOne, this.onTwo] = [
      this.#points(dimensions),
      this.#points(dimensions - 1),
      this.#points(dimensions - 2),
    ];
  }

  /** The vector of the point with a number in [0, points). Its first nonzero coordinate is 1. */
  vector(point: number): number[] {
    let [zeros, size] = [0, this.prime ** (this.dimensions - 1)];
    for (; point >= size; zeros += 1) {
      point -= size;
      size /= this.prime;
    }
    const vector = Array.from({ length: this.dimensions }, (_, index) => Number(index === zeros));
    for (let index = this.dimensions - 1; index > zeros; index -= 1) {
      vector[index] = point % this.prime;
      point = Math.floor(point / this.prime);
    }
    return vector;
  }

  /** The inner product of a point's vector and the digits of a number in [0, s ** t), modulo s. */
  bucket(number: number, point: number): number {
    const vector = this.vector(point);
    let total = 0;
    for (const coefficient of vector.reverse()) {
      total += coefficient * (number % this.prime);
      number = Math.floor(number / this.prime);
    }
    return total % this.prime;
  }

  /** The number of the point that a nonzero vector with coordinates in [0, s) represents. */
  point(vector: readonly number[]): number {
    const zeros = vector.findIndex((coordinate) => coordinate);
    const inverse = this.#inverse(vector[zeros] ?? 1);
    const number = vector
      .slice(zeros + 1)
      .reduce((sum, coordinate) => sum * this.prime + ((coordinate * inverse) % this.prime), 0);
    return this.points - this.#points(this.dimensions - zeros) + number;
  }

  /** The number of points of a space with this many coordinates. */
  #points(coordinates: number): number {
    return (this.prime ** coordinates - 1) / (this.prime - 1);
  }

  #inverse(number: number): number {
    // By Fermat's little theorem: number ** (s - 2) modulo s.
    let [power, square] = [1, number];
    for (let exponent = this.prime - 2; exponent > 0; exponent = Math.floor(exponent / 2)) {
      if (exponent % 2) power = (power * square) % this.prime;
      square = (square * square) % this.prime;
    }
    return power;
  }
}
