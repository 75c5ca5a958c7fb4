/** Exact fractions, in which probabilities are computed, so that only explicit steps round. */

/** A fraction of integers; `below` is positive. Not always in lowest terms. */
export interface Fraction {
  readonly above: bigint;
  readonly below: bigint;
}

/** above / below. */
export function fraction(numerator: bigint, denominator = 1n): Fraction {
  return denominator < 0n
    ? { above: -numerator, below: -denominator }
    : { above: numerator, below: denominator };
}

/** a + b. */
export function plus(a: Fraction, b: Fraction): Fraction {
  return fraction(a.above * b.below + b.above * a.below, a.below * b.below);
}

/** a - b. */
export function minus(a: Fraction, b: Fraction): Fraction {
  return fraction(a.above * b.below - b.above * a.below, a.below * b.below);
}

/** a b. */
export function times(a: Fraction, b: Fraction): Fraction {
  return fraction(a.above * b.above, a.below * b.below);
}

/** a / b, for b that is not 0. */
export function over(a: Fraction, b: Fraction): Fraction {
  return fraction(a.above * b.below, a.below * b.above);
}

/** The exact value of a finite double. */
export function exact(number: number): Fraction {
  let [numerator, denominator] = [number, 1n];
  while (!Number.isInteger(numerator)) [numerator, denominator] = [2 * numerator, 2n * denominator];
  return fraction(BigInt(numerator), denominator);
}

/** The nearest double. */
export function toNumber({ above, below }: Fraction): number {
  if (above < 0n) return -toNumber({ above: -above, below });
  if (above === 0n) return 0;
  // Enough digits that a single sticky bit for the rest makes the final rounding correct.
  const shift = 70 - length(above) + length(below);
  const [top, under] =
    shift > 0 ? [above << BigInt(shift), below] : [above, below << BigInt(-shift)];
  const cut = top % under ? 1n : 0n;
  return Number((top / under) | cut) * 2 ** -shift;
}

/** The nearest integer; a tie goes to the even one, as in Python. */
export function rounded({ above, below }: Fraction): bigint {
  const floor = above / below;
  const remainder = 2n * (above - floor * below);
  return remainder > below || (remainder === below && floor & 1n) ? floor + 1n : floor;
}

/** The whole number nearest to a double that is at least 0; a tie goes to the even one. */
export function nearest(number: number): number {
  return Number(rounded(exact(number)));
}

/** An upper bound of the number of binary digits, at most three too large. */
function length(number: bigint): number {
  return 4 * number.toString(16).length;
}
