/**
 * Mechanisms that report a listed value by one index: `rr` and `grr`.
 *
 * Each reports the true value with probability `keep`, and otherwise one of the other values,
 * uniformly. Sources and estimators: rr.py and grr.py of client/hubbub/mechanisms.
 */
import { BadParameter } from "../errors.js";
import { pick, type BitSource } from "./random_bits.js";
import { fraction, dividedBy, plus, type Fraction } from "./fraction.js";
import { indexBytes, packed } from "./packing.js";
import { atMost, expAtMost, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, indexIn, type Arguments, type Randomizer } from "./randomizer.js";

/** `grr`, and `rr` over two values. Kairouz, Bonawitz, Ramage (ICML 2016); Warner (1965). */
export function grr(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  const keep = keepChance(expAtMost(settings.epsilon), categories);
  return {
    payloadBytes: indexBytes(categories),
    privacyLoss: loss(keep, categories),
    permanentLoss: Infinity,
    check: (value) => void indexIn(categories, value),
    randomize(value, source) {
      const place = indexIn(categories, value);
      return index(respond(place, keep, categories, source), categories);
    },
  };
}

/** Randomized response to a yes/no question: the same as `grr` over two values, coin by coin. */
export function rr(settings: Arguments): Randomizer {
  if (settings.categories !== 2) throw new BadParameter("rr answers a yes/no question; use grr");
  return grr(settings);
}

/**
 * The threshold of the true value's probability e / (e + d - 1). PRIVACY: rounded down, towards
 * uniform.
 */
export function keepChance(odds: Fraction, categories: number): bigint {
  return atMost(dividedBy(odds, plus(odds, fraction(BigInt(categories - 1)))));
}

/** The value with probability `keep`, otherwise one of the other categories. */
export function respond(value: number, keep: bigint, categories: number, source: BitSource) {
  if (source.chance(keep)) return value;
  const otherIndex = pick(source, categories - 1); // skips the value itself
  return otherIndex + Number(otherIndex >= value);
}

/** The maximum loss of a report, in nats, if the true value is kept with this probability. */
export function loss(keep: bigint, categories: number): number {
  return logAtLeast(fraction(keep * BigInt(categories - 1), ONE - keep));
}

/** The payload of one index in [0, size). */
export function index(value: number, size: number) {
  return packed(BigInt(value), indexBytes(size));
}
