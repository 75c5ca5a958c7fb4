/**
 * Mechanisms that report a listed value as a vector with one bit for each value: `unary.sue` and
 * `unary.oue`.
 *
 * Sources and estimators: client/hubbub/mechanisms/unary.py.
 */
import type { BitSource } from "./random_bits.js";
import { fraction, dividedBy, plus } from "./fraction.js";
import { packed, vectorBytes } from "./packing.js";
import { atLeast, expAtMost, HALF, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, indexIn, type Arguments, type Randomizer } from "./randomizer.js";

/** Symmetric unary encoding: every bit is flipped with probability `lie`. */
export function symmetricUnary(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  const lie = flipped(settings.epsilon);
  return {
    ...vector(categories),
    privacyLoss: logAtLeast(fraction(ONE - lie, lie), 2),
    permanentLoss: Infinity,
    randomize(value, source) {
      const trueBit = 1n << BigInt(indexIn(categories, value));
      return packed(source.mask(lie, categories) ^ trueBit, vectorBytes(categories));
    },
  };
}

/**
 * Optimized unary encoding: the bit of the true value is a fair coin; the other bits are rarely 1.
 */
export function optimizedUnary(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  const odds = expAtMost(settings.epsilon);
  const lie = atLeast(dividedBy(fraction(1n), plus(odds, fraction(1n))));
  return {
    ...vector(categories),
    privacyLoss: logAtLeast(fraction(ONE - lie, lie)),
    permanentLoss: Infinity,
    randomize(value, source) {
      const category = indexIn(categories, value);
      return packed(fairAt(category, lie, categories, source), vectorBytes(categories));
    },
  };
}

/**
 * The threshold of the probability 1 / (sqrt(e) + 1) of a flip, rounded up, for mechanisms whose
 * vectors differ in two bits.
 */
export function flipped(epsilon: number): bigint {
  return atLeast(dividedBy(fraction(1n), plus(expAtMost(epsilon, 0.5), fraction(1n))));
}

/** The properties that all mechanisms with one bit for each value share. */
export function vector(categories: number) {
  return {
    payloadBytes: vectorBytes(categories),
    check: (value: unknown) => void indexIn(categories, value),
  };
}

/** A vector of random flips in which the bit of the value itself is a fair coin. */
export function fairAt(code: number, lie: bigint, categories: number, source: BitSource): bigint {
  const [bits, bit] = [source.mask(lie, categories), BigInt(code)];
  const isSet = ((bits >> bit) & 1n) === 1n;
  return isSet === source.chance(HALF) ? bits : bits ^ (1n << bit);
}
