/**
 * Listed values with a permanent lie under a fresh one: `long.grr` and `long.unary`.
 *
 * Sources and estimators: long_grr.py and long_unary.py of client/hubbub/mechanisms.
 */
import { BadParameter } from "../errors.js";
import { fraction, minus, over, plus, times, type Fraction } from "./fraction.js";
import { index, kept, loss, respond } from "./listed.js";
import { indexBytes, packed, vectorBytes } from "./packing.js";
import { packedIndex, permanent, type Permanent } from "./permanent.js";
import { atLeast, atMost, chanceOf, expAtMost, logAtLeast, ONE } from "./probability.js";
import {
  categoriesOf,
  forgetful,
  indexIn,
  numberOf,
  type Arguments,
  type Randomizer,
} from "./randomizer.js";
import { fairAt, vector } from "./unary.js";

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

/** Just below exp of epsilon and permanent_epsilon: of one report, and of all of one value. */
function odds(given: Arguments): [Fraction, Fraction] {
  const forever = numberOf(given, "permanent_epsilon");
  if (!(given.epsilon < forever)) throw new BadParameter("epsilon is not below permanent_epsilon");
  return [expAtMost(given.epsilon), expAtMost(forever)];
}
