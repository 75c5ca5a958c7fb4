/**
 * Floating-point functions whose results agree to the last digit in every engine and language.
 *
 * They use only sums, products, quotients and roots, which IEEE 754 rounds in exactly one way; the
 * results of Math.exp and Math.hypot depend on the engine. Sources:
 * client/hubbub/mechanisms/portable_floats.py.
 */

// exp(-x) is the series of x / 64, squared SQUARINGS times; for x up to MOST its error is below
// 2**-45.
const SQUARINGS = 6;
const TERMS = 20;
const MOST = 64;
// Above OUTER, the survival function is a continued fraction of FRACTIONS terms.
const OUTER = 2;
const FRACTIONS = 60;

/**
 * The sum of finite numbers, rounded once, as Python's `math.fsum`.
 *
 * The sum is kept in parts that do not overlap, the smallest first. Shewchuk (Discrete Comput.
 * Geom. 18, 1997).
 */
export function sum(numbers: ArrayLike<number>): number {
  const parts: number[] = [];
  for (let index = 0; index < numbers.length; index += 1) {
    let total = numbers[index] ?? 0;
    let partCount = 0;
    // Plain indices and swaps, for speed: a vector of a thousand numbers is summed a thousand
    // times.
    for (let part = 0; part < parts.length; part += 1) {
      const other = parts[part] ?? 0;
      const high = total + other;
      const low =
        Math.abs(total) < Math.abs(other) ? total - (high - other) : other - (high - total);
      if (low) parts[partCount++] = low;
      total = high;
    }
    parts.length = partCount;
    parts.push(total);
  }
  let [high, low] = [parts.pop() ?? 0, 0];
  while (parts.length && !low) {
    const [larger, other] = [high, parts.pop() ?? 0];
    high = larger + other;
    low = other - (high - larger);
  }
  // The sum lies half way between two floats, and the sign of the next part decides the rounding.
  const next = parts.pop() ?? 0;
  if ((low < 0 && next < 0) || (low > 0 && next > 0)) {
    const doubled = 2 * low;
    const other = high + doubled;
    if (other - high === doubled) return other;
  }
  return high;
}

/** The inner product of two vectors of equal length. */
export function product(first: ArrayLike<number>, second: ArrayLike<number>): number {
  const products = new Float64Array(first.length);
  for (let index = 0; index < products.length; index += 1)
    products[index] = (first[index] ?? 0) * (second[index] ?? 0);
  return sum(products);
}

/** The Euclidean length of a vector. The squares of its numbers must be finite. */
export function length(numbers: readonly number[]): number {
  return Math.sqrt(product(numbers, numbers));
}

/** exp(-x), for x in [0, 64]. */
export function expNeg(x: number): number {
  const part = Math.min(x, MOST) / 2 ** SQUARINGS;
  let quotient = 1;
  for (let term = TERMS; term > 0; term -= 1) quotient = 1 - (part * quotient) / term;
  for (let squaring = 0; squaring < SQUARINGS; squaring += 1) quotient *= quotient;
  return quotient;
}

/** The density of the standard normal distribution at z in [-11, 11]. */
export function density(z: number): number {
  return expNeg((z * z) / 2) / Math.sqrt(2 * Math.PI);
}

/** The probability that a standard normal number exceeds z in [-11, 11]. */
export function survivalFunction(z: number): number {
  if (z < 0) return 1 - survivalFunction(-z);
  if (z < OUTER) {
    let [term, sum] = [z, z];
    for (let odd = 3; term > sum * 2 ** -60; odd += 2) {
      term *= (z * z) / odd;
      sum += term;
    }
    return 0.5 - density(z) * sum;
  }
  let under = z;
  for (let term = FRACTIONS; term > 0; term -= 1) under = z + term / under;
  return density(z) / under;
}

/**
 * The probabilities of 0, 1, ... `trials` successes. yes: the probability of a success. no: that of
 * a failure.
 */
export function binomial(trials: number, yes: number, no: number): Float64Array {
  const middle = Math.min(Math.floor((trials + 1) * yes), trials);
  const chances = new Float64Array(trials + 1);
  let [likelihood, total] = [1, 1];
  chances[middle] = 1;
  for (let successes = middle; successes < trials; successes += 1) {
    likelihood *= ((trials - successes) / (successes + 1)) * (yes / no);
    chances[successes + 1] = likelihood;
    total += likelihood;
  }
  likelihood = 1;
  for (let successes = middle; successes > 0; successes -= 1) {
    likelihood *= (successes / (trials - successes + 1)) * (no / yes);
    chances[successes - 1] = likelihood;
    total += likelihood;
  }
  return chances.map((chance) => chance / total);
}
