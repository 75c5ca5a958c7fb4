/** Exact fractions: what probabilities are worked out in, so that nothing is rounded by chance. */

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

/** A finite double as it is. */
export function exact(number: number): Fraction {
  let [numerator, denominator] = [number, 1n];
  while (!Number.isInteger(numerator)) [numerator, denominator] = [2 * numerator, 2n * denominator];
  return fraction(BigInt(numerator), denominator);
}

/** The nearest double. */
export function toNumber({ above, below }: Fraction): number {
  if (above < 0n) return -toNumber({ above: -above, below });
  if (above === 0n) return 0;
  // So many digits that what was cut off only has to be marked, for the last rounding to be right.
  const shift = 70 - length(above) + length(below);
  const [top, under] =
    shift > 0 ? [above << BigInt(shift), below] : [above, below << BigInt(-shift)];
  const cut = top % under ? 1n : 0n;
  return Number((top / under) | cut) * 2 ** -shift;
}

/** The nearest integer; of two the even one, as Python rounds. */
export function rounded({ above, below }: Fraction): bigint {
  const floor = above / below;
  const remainder = 2n * (above - floor * below);
  return remainder > below || (remainder === below && floor & 1n) ? floor + 1n : floor;
}

/** The nearest whole number to a double that is not below 0; of two the even one. */
export function nearest(number: number): number {
  return Number(rounded(exact(number)));
}

/** About how many binary digits, up to three too many. */
function length(number: bigint): number {
  return 4 * number.toString(16).length;
}
