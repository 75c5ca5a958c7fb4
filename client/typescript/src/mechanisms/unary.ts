/**
 * Listed values by one bit each: `unary.sue`, `unary.oue`, and `long.unary` with a permanent lie.
 *
 * Sources and estimators: unary.py and long_unary.py of client/hubbub/mechanisms.
 */
import type { BitSource } from "./bits.js";
import { fraction, minus, over, plus, times } from "./fraction.js";
import { odds, packedIndex } from "./listed.js";
import { packed, vectorBytes } from "./packing.js";
import { permanent, type Permanent } from "./permanent.js";
import { atLeast, chanceOf, expAtMost, HALF, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, forgetful, indexIn, type Arguments, type Randomizer } from "./randomizer.js";

/** Symmetric unary encoding: every bit is flipped with the chance `lie`. */
export function symmetricUnary(given: Arguments): Randomizer {
  const categories = categoriesOf(given);
  const lie = flipped(given.epsilon);
  return {
    ...vector(categories),
    privacyLoss: logAtLeast(fraction(ONE - lie, lie), 2),
    permanentLoss: Infinity,
    randomize(value, source) {
      const own = 1n << BigInt(indexIn(categories, value));
      return packed(source.mask(lie, categories) ^ own, vectorBytes(categories));
    },
  };
}

/** Optimized unary encoding: the one is a fair coin, a zero rarely lies. */
export function optimizedUnary(given: Arguments): Randomizer {
  const categories = categoriesOf(given);
  const odds = expAtMost(given.epsilon);
  const lie = atLeast(over(fraction(1n), plus(odds, fraction(1n))));
  return {
    ...vector(categories),
    privacyLoss: logAtLeast(fraction(ONE - lie, lie)),
    permanentLoss: Infinity,
    randomize(value, source) {
      const own = indexIn(categories, value);
      return packed(fairAt(own, lie, categories, source), vectorBytes(categories));
    },
  };
}

/** Longitudinal optimized unary encoding. Arcolezi, Couchot, Al Bouna, Xiao (2022). */
export function longUnary(given: Arguments): Randomizer & Permanent {
  const categories = categoriesOf(given);
  const [report, forever] = odds(given);
  const rare = atLeast(over(fraction(1n), plus(forever, fraction(1n))));
  const one = chanceOf(rare);
  const left = minus(fraction(1n), times(fraction(2n), one));
  // PRIVACY: up; then a true 0 is sent as 1 with a chance of 1 / (report + 1) at least.
  const flip = atLeast(over(minus(over(fraction(1n), plus(report, fraction(1n))), one), left));
  const both = plus(one, times(chanceOf(flip), left));
  const key = (value: unknown) => packedIndex(indexIn(categories, value));
  return {
    ...vector(categories),
    privacyLoss: logAtLeast(over(minus(fraction(1n), both), both)),
    permanentLoss: logAtLeast(fraction(ONE - rare, rare)),
    permanentKey: key,
    randomize(value, source, memo = forgetful(source)) {
      const own = indexIn(categories, value);
      // PRIVACY: one permanent vector per value, for as long as the device keeps its secret.
      const once = fairAt(own, rare, categories, memo.coins(permanent(key(own))));
      return packed(once ^ source.mask(flip, categories), vectorBytes(categories));
    },
  };
}

/** The chance 1 / (sqrt(e) + 1) of a lie, rounded up, as of mechanisms that differ in two bits. */
export function flipped(epsilon: number): bigint {
  return atLeast(over(fraction(1n), plus(expAtMost(epsilon, 0.5), fraction(1n))));
}

function vector(categories: number) {
  return {
    payloadBytes: vectorBytes(categories),
    check: (value: unknown) => void indexIn(categories, value),
  };
}

/** A vector of lies whose bit of the value itself is a fair coin. */
function fairAt(own: number, lie: bigint, categories: number, source: BitSource): bigint {
  const [bits, bit] = [source.mask(lie, categories), BigInt(own)];
  const is = ((bits >> bit) & 1n) === 1n;
  return is === source.chance(HALF) ? bits : bits ^ (1n << bit);
}
