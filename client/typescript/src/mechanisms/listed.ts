/**
 * Listed values by one index: `rr`, `grr`, and `long.grr` with a permanent lie beneath.
 *
 * Each tells the truth with probability `keep` and otherwise names one of the other values, uniformly.
 * Sources and estimators: rr.py, grr.py and long_grr.py of client/hubbub/mechanisms.
 */
import { BadParameter } from "../errors.js";
import { pick, type BitSource } from "./bits.js";
import { fraction, minus, over, plus, times, type Fraction } from "./fraction.js";
import { indexBytes, joined, packed } from "./packing.js";
import { permanent, type Permanent } from "./permanent.js";
import { atMost, chanceOf, expAtMost, logAtLeast, ONE } from "./probability.js";
import {
  categoriesOf,
  forgetful,
  indexIn,
  numberOf,
  type Arguments,
  type Randomizer,
} from "./randomizer.js";

/** `grr`, and `rr` over two values. Kairouz, Bonawitz, Ramage (ICML 2016); Warner (1965). */
export function grr(given: Arguments): Randomizer {
  const categories = categoriesOf(given);
  const keep = kept(expAtMost(given.epsilon), categories);
  return {
    payloadBytes: indexBytes(categories),
    privacyLoss: loss(keep, categories),
    permanentLoss: Infinity,
    check: (value) => void indexIn(categories, value),
    randomize(value, source) {
      const own = indexIn(categories, value);
      return index(respond(own, keep, categories, source), categories);
    },
  };
}

/** Randomized response: a yes/no question. To the last coin it is `grr` over two values. */
export function rr(given: Arguments): Randomizer {
  if (given.categories !== 2) throw new BadParameter("rr answers a yes/no question; use grr");
  return grr(given);
}

/** Longitudinal k-RR. Arcolezi, Couchot, Al Bouna, Xiao (2022); decision 0011. */
export function longGrr(given: Arguments): Randomizer & Permanent {
  const categories = categoriesOf(given);
  const others = fraction(BigInt(categories - 1));
  const [report, forever] = odds(given);
  const lasting = kept(forever, categories);
  const held = chanceOf(lasting);
  const lied = over(chanceOf(ONE - lasting), others);
  // The chances of the true value and of another one after both steps are linear in the chance that
  // the second one keeps; the latter is taken where their ratio is `report` exactly.
  const [truthSlope, truth] = [minus(held, lied), lied];
  const lieSlope = over(minus(lied, held), others);
  const lie = over(plus(held, times(minus(others, fraction(1n)), lied)), others);
  // PRIVACY: down, to uniform.
  const fresh = atMost(
    over(minus(times(report, lie), truth), minus(truthSlope, times(report, lieSlope))),
  );
  const truly = plus(truth, times(chanceOf(fresh), truthSlope));
  const falsely = plus(lie, times(chanceOf(fresh), lieSlope));
  const key = (value: unknown) => packedIndex(indexIn(categories, value));
  return {
    payloadBytes: indexBytes(categories),
    privacyLoss: logAtLeast(over(truly, falsely)),
    permanentLoss: loss(lasting, categories),
    check: (value) => void indexIn(categories, value),
    permanentKey: key,
    randomize(value, source, memo = forgetful(source)) {
      const own = indexIn(categories, value);
      // PRIVACY: one permanent value per value, for as long as the device keeps its secret.
      const coins = memo.coins(permanent(key(own)));
      const once = respond(own, lasting, categories, coins);
      return index(respond(once, fresh, categories, source), categories);
    },
  };
}

/** Just below exp of epsilon and permanent_epsilon: of one report, and of all of one value. */
export function odds(given: Arguments): [Fraction, Fraction] {
  const forever = numberOf(given, "permanent_epsilon");
  if (!(given.epsilon < forever)) throw new BadParameter("epsilon is not below permanent_epsilon");
  return [expAtMost(given.epsilon), expAtMost(forever)];
}

/** What a permanent response to a category depends on. */
export function packedIndex(value: number) {
  return joined(packed(BigInt(value), 4)).reverse();
}

/** The truth's threshold: e / (e + d - 1). PRIVACY: down, towards uniform. */
export function kept(odds: Fraction, categories: number): bigint {
  return atMost(over(odds, plus(odds, fraction(BigInt(categories - 1)))));
}

/** One of so many, or another one. */
export function respond(value: number, keep: bigint, categories: number, source: BitSource) {
  if (source.chance(keep)) return value;
  const other = pick(source, categories - 1); // skips the value itself
  return other + Number(other >= value);
}

/** What telling the truth so often says at most, in nats. */
export function loss(keep: bigint, categories: number): number {
  return logAtLeast(fraction(keep * BigInt(categories - 1), ONE - keep));
}

/** The payload of one index in [0, size). */
export function index(value: number, size: number) {
  return packed(BigInt(value), indexBytes(size));
}
