/**
 * Probabilities as multiples of 2**-64, and exp as an exact fraction: what sampler and guarantee share.
 *
 * As `client/hubbub/mechanisms/probability.py`: the privacy side is rounded outward.
 */
import { BadParameter } from "../errors.js";

/** How many binary digits a probability has. */
export const DIGITS = 64n;
/** The threshold of certainty. */
export const ONE = 1n << DIGITS;

const MIN_EPSILON = 2 ** -10;
const MAX_EPSILON = 16;
// The share of epsilon given up so that rounding can never carry a loss past the claim. V8's exp is
// right to one unit in the last place, 2**-52; this is 4,000 times that.
const SLACK = 2 ** -40;
const FRACTION_DIGITS = 52;

/** A fraction of integers; `below` is positive. */
export interface Fraction {
  readonly above: bigint;
  readonly below: bigint;
}

/**
 * A fraction just below exp(epsilon), for `epsilon` in nats.
 *
 * @throws BadParameter epsilon is outside [2**-10, 16].
 */
export function expAtMost(epsilon: number): Fraction {
  if (!(epsilon >= MIN_EPSILON && epsilon <= MAX_EPSILON)) {
    throw new BadParameter(`epsilon ${epsilon} is outside [${MIN_EPSILON}, ${MAX_EPSILON}] nats`);
  }
  // PRIVACY: rounds the exponent down by more than exp's own error.
  const odds = Math.exp(epsilon * (1 - SLACK));
  // Exact: a double of at least 1 has no digit after the 52nd.
  return { above: BigInt(odds * 2 ** FRACTION_DIGITS), below: 1n << BigInt(FRACTION_DIGITS) };
}

/** The largest multiple of 2**-64 that is not above a fraction in [0, 1], as its threshold. */
export function atMost(probability: Fraction): bigint {
  if (probability.above < 0n || probability.above > probability.below) {
    throw new BadParameter("a probability is outside [0, 1]");
  }
  return (probability.above << DIGITS) / probability.below;
}
