/** Exact fractions, in which probabilities are computed, so that only explicit steps round. */

/** A fraction of integers; `denominator` is positive. Not always in lowest terms. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** numerator / denominator. */
export function fraction(numerator: bigint, denominator = 1n): Fraction {
  return denominator < 0n
    ? { numerator: -numerator, denominator: -denominator }
    : { numerator, denominator };
}

/** a + b. */
export function plus(a: Fraction, b: Fraction): Fraction {
  return fraction(
    a.numerator * b.denominator + b.numerator * a.denominator,
    a.denominator * b.denominator,
  );
}

/** a - b. */
export function minus(a: Fraction, b: Fraction): Fraction {
  return fraction(
    a.numerator * b.denominator - b.numerator * a.denominator,
    a.denominator * b.denominator,
  );
}

/** a b. */
export function times(a: Fraction, b: Fraction): Fraction {
  return fraction(a.numerator * b.numerator, a.denominator * b.denominator);
}

/** a / b, for b that is not 0. */
export function dividedBy(a: Fraction, b: Fraction): Fraction {
  return fraction(a.numerator * b.denominator, a.denominator * b.numerator);
}

/** The exact value of a finite double. */
export function exact(number: number): Fraction {
  let [numerator, denominator] = [number, 1n];
  while (!Number.isInteger(numerator)) [numerator, denominator] = [2 * numerator, 2n * denominator];
  return fraction(BigInt(numerator), denominator);
}

/** The nearest double. */
export function toNumber({ numerator, denominator }: Fraction): number {
  if (numerator < 0n) return -toNumber({ numerator: -numerator, denominator });
  if (numerator === 0n) return 0;
  // Enough digits that a single sticky bit for the rest makes the final rounding correct.
  const shift = 70 - length(numerator) + length(denominator);
  const [dividend, divisor] =
    shift > 0
      ? [numerator << BigInt(shift), denominator]
      : [numerator, denominator << BigInt(-shift)];
  const cut = dividend % divisor ? 1n : 0n;
  return Number((dividend / divisor) | cut) * 2 ** -shift;
}

/** The nearest integer; a tie goes to the even one, as in Python. */
export function rounded({ numerator, denominator }: Fraction): bigint {
  const floor = numerator / denominator;
  const remainder = 2n * (numerator - floor * denominator);
  return remainder > denominator || (remainder === denominator && floor & 1n) ? floor + 1n : floor;
}

/** The whole number nearest to a double that is at least 0; a tie goes to the even one. */
export function nearest(number: number): number {
  return Number(rounded(exact(number)));
}

/** An upper bound of the number of binary digits, at most three too large. */
function length(number: bigint): number {
  return 4 * number.toString(16).length;
}
