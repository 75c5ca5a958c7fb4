/**
 * Probabilities as multiples of 2**-64, and exp as an exact fraction: the sampler and the guarantee
 * use both.
 *
 * As `client/hubbub/mechanisms/probability.py`: the privacy side is rounded outward. A probability
 * is written as its threshold, a whole number in [0, 2**64].
 */
import { BadParameter } from "../errors.js";
import { exact, fraction, minus, toNumber, type Fraction } from "./fraction.js";

/** The number of binary digits of a probability. */
export const DIGITS = 64n;
/** The threshold of certainty. */
export const ONE = 1n << DIGITS;
/** The threshold of a fair coin. */
export const HALF = ONE >> 1n;

const MIN_EPSILON = 2 ** -10;
const MAX_EPSILON = 16;
// The share of epsilon that is given up, so that rounding never makes a loss exceed the claim.
const SLACK = 2 ** -40;
const LOG_ERROR = 2 ** -50;
// Digits after the point, and halvings before the series: the error is far below a double's last
// digit.
const PLACES = 160n;
const HALVINGS = 12;

/**
 * A fraction just below exp(share epsilon), for `epsilon` in nats.
 *
 * @throws BadParameter epsilon is outside [2**-10, 16].
 */
export function expAtMost(epsilon: number, share: 1 | 0.5 = 1): Fraction {
  if (!(epsilon >= MIN_EPSILON && epsilon <= MAX_EPSILON)) {
    throw new BadParameter(`epsilon ${epsilon} is outside [${MIN_EPSILON}, ${MAX_EPSILON}] nats`);
  }
  // PRIVACY: rounds the exponent down by more than exp's own error.
  return exp(epsilon * (1 - SLACK) * share);
}

/** The largest multiple of 2**-64 that is not above a fraction in [0, 1], as its threshold. */
export function atMost(probability: Fraction): bigint {
  return checked((probability.numerator << DIGITS) / probability.denominator, probability);
}

/** The smallest multiple of 2**-64 that is not below a fraction in [0, 1], as its threshold. */
export function atLeast(probability: Fraction): bigint {
  const numerator = probability.numerator << DIGITS;
  return checked((numerator + probability.denominator - 1n) / probability.denominator, probability);
}

/** The probability of a threshold. */
export function chanceOf(threshold: bigint): Fraction {
  return fraction(threshold, ONE);
}

/** `times` the natural logarithm of a likelihood ratio >= 1, in nats, rounded up. */
export function logAtLeast(ratio: Fraction, times = 1): number {
  // log1p of the exact excess keeps its precision where the ratio is close to one.
  // PRIVACY: rounds up by more than the error of log1p and of the products.
  return times * Math.log1p(toNumber(minus(ratio, fraction(1n)))) * (1 + LOG_ERROR);
}

/**
 * A fraction close to exp(x), for x in [0, 16].
 *
 * Computed with whole numbers, because engines differ in the last digit of Math.exp, and the format
 * of a payload may depend on it.
 */
function exp(x: number): Fraction {
  const { numerator, denominator } = exact(x);
  const scaledFraction = (numerator << PLACES) / (denominator << BigInt(HALVINGS));
  let term = 1n << PLACES;
  let sum = term;
  for (let n = 1n; term; n += 1n) {
    term = ((term * scaledFraction) >> PLACES) / n;
    sum += term;
  }
  for (let halving = 0; halving < HALVINGS; halving += 1) sum = (sum * sum) >> PLACES;
  return exact(Number(sum) / 2 ** Number(PLACES));
}

function checked(threshold: bigint, probability: Fraction): bigint {
  if (probability.numerator < 0n || probability.numerator > probability.denominator) {
    throw new BadParameter("a probability is outside [0, 1]");
  }
  return threshold;
}
