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
const MAX_EXPONENT = 64;
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
    let running = numbers[index] ?? 0;
    let partCount = 0;
    // Plain indices and swaps, for speed: a vector of a thousand numbers is summed a thousand
    // times.
    for (let part = 0; part < parts.length; part += 1) {
      const partial = parts[part] ?? 0;
      const high = running + partial;
      const low =
        Math.abs(running) < Math.abs(partial)
          ? running - (high - partial)
          : partial - (high - running);
      if (low) parts[partCount++] = low;
      running = high;
    }
    parts.length = partCount;
    parts.push(running);
  }
  let [high, low] = [parts.pop() ?? 0, 0];
  while (parts.length && !low) {
    const [larger, smaller] = [high, parts.pop() ?? 0];
    high = larger + smaller;
    low = smaller - (high - larger);
  }
  // The sum lies half way between two floats, and the sign of the next part decides the rounding.
  const nextPart = parts.pop() ?? 0;
  if ((low < 0 && nextPart < 0) || (low > 0 && nextPart > 0)) {
    const doubled = 2 * low;
    const roundedUp = high + doubled;
    if (roundedUp - high === doubled) return roundedUp;
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
  const part = Math.min(x, MAX_EXPONENT) / 2 ** SQUARINGS;
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
  let denominator = z;
  for (let term = FRACTIONS; term > 0; term -= 1) denominator = z + term / denominator;
  return density(z) / denominator;
}

/**
 * The probabilities of 0, 1, ... `trials` successes. yes: the probability of a success. no: that of
 * a failure.
 */
export function binomial(trials: number, yes: number, no: number): Float64Array {
  const middle = Math.min(Math.floor((trials + 1) * yes), trials);
  const chances = new Float64Array(trials + 1);
  let [likelihood, likelihoodSum] = [1, 1];
  chances[middle] = 1;
  for (let successes = middle; successes < trials; successes += 1) {
    likelihood *= ((trials - successes) / (successes + 1)) * (yes / no);
    chances[successes + 1] = likelihood;
    likelihoodSum += likelihood;
  }
  likelihood = 1;
  for (let successes = middle; successes > 0; successes -= 1) {
    likelihood *= (successes / (trials - successes + 1)) * (no / yes);
    chances[successes - 1] = likelihood;
    likelihoodSum += likelihood;
  }
  return chances.map((chance) => chance / likelihoodSum);
}
