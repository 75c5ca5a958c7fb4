/**
 * Subset selection: reports a few values, which include the true one with a higher probability than
 * any other.
 *
 * Source and estimator: client/hubbub/mechanisms/subset.py.
 */
import { fraction, dividedBy, plus, rounded, times } from "./fraction.js";
import { packed, vectorBytes } from "./packing.js";
import { atMost, expAtMost, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, indexIn, type Arguments, type Randomizer } from "./randomizer.js";
import { choose } from "./subsets.js";

/** `subset`. Ye and Barg (2018); Wang, Huang, Wang, Nie, Xing (2016). */
export function subsetSelection(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  const odds = expAtMost(settings.epsilon);
  const categoryCount = fraction(BigInt(categories));
  const oneCount = Math.max(1, Number(rounded(dividedBy(categoryCount, plus(odds, fraction(1n))))));
  const truth = times(fraction(BigInt(oneCount)), odds);
  const otherCount = BigInt(categories - oneCount);
  // PRIVACY: rounded down, towards uniform.
  const include = atMost(dividedBy(truth, plus(truth, fraction(otherCount))));
  return {
    payloadBytes: vectorBytes(categories),
    privacyLoss: logAtLeast(fraction(include * otherCount, (ONE - include) * BigInt(oneCount))),
    permanentLoss: Infinity,
    check: (value) => void indexIn(categories, value),
    randomize(value, source) {
      const category = BigInt(indexIn(categories, value));
      const included = source.chance(include);
      const chosenBits = choose(categories - 1, oneCount - Number(included), source);
      // The other values are numbered without the true one, so its bit is inserted here.
      const lowerBits = chosenBits & ((1n << category) - 1n);
      const bit = BigInt(included) << category;
      return packed(((chosenBits - lowerBits) << 1n) | bit | lowerBits, vectorBytes(categories));
    },
  };
}
