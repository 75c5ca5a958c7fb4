/**
 * Mechanisms that randomize a listed value permanently, then once more for each report: `long.grr`,
 * `long.hash` and `long.unary`.
 *
 * Sources and estimators: longitudinal_grr.py, longitudinal_hash.py and longitudinal_unary.py of client/hubbub/mechanisms.
 */
import { BadParameter } from "../errors.js";
import { pick, type BitSource } from "./random_bits.js";
import { fraction, minus, dividedBy, plus, times, toNumber, type Fraction } from "./fraction.js";
import { Geometry, primes } from "./projective_geometry.js";
import { index, keepChance, loss, respond } from "./randomized_response.js";
import { indexBytes, packed, vectorBytes } from "./packing.js";
import { packedIndex, permanent, purpose, type Permanent } from "./permanent.js";
import { atLeast, atMost, chanceOf, expAtMost, logAtLeast, ONE } from "./probability.js";
import {
  categoriesOf,
  forgetful,
  indexIn,
  numberOf,
  wholeOf,
  type Arguments,
  type Memo,
  type Randomizer,
} from "./randomizer.js";
import { fairAt, vector } from "./unary.js";

/** Longitudinal k-RR. Arcolezi, Couchot, Al Bouna, Xiao (2022); decision 0212. */
export function longGrr(settings: Arguments): Randomizer & Permanent {
  const categories = categoriesOf(settings);
  const { privacyLoss, permanentLoss, respond } = chained(settings, categories);
  return {
    payloadBytes: indexBytes(categories),
    privacyLoss,
    permanentLoss,
    check: (value) => void indexIn(categories, value),
    permanentKey: (value) => packedIndex(indexIn(categories, value)),
    randomize: (value, source, memo = forgetful(source)) =>
      index(respond(indexIn(categories, value), memo, source), categories),
  };
}

/**
 * Longitudinal local hashing: the bucket of a value under a function that the device picks for life
 * from a public pool. Arcolezi, Pinzon, Palamidessi, Gambs (EDBT 2023); decision 0212.
 */
export function longHash(settings: Arguments): Randomizer & Permanent {
  const categories = categoriesOf(settings);
  const { space, chain } = poolOf(settings, categories);
  const { points, prime } = space;
  const hashed = (value: unknown, memo: Memo): [number, number] => {
    const category = indexIn(categories, value);
    // PRIVACY: one function for the device's lifetime, drawn independently of the value.
    const pointNumber = pick(memo.coins(purpose("function")), points);
    return [pointNumber, space.bucket(category, pointNumber)];
  };
  return {
    payloadBytes: indexBytes(points * prime),
    privacyLoss: chain.privacyLoss,
    permanentLoss: chain.permanentLoss,
    check: (value) => void indexIn(categories, value),
    permanentKey: (value, memo) => packedIndex(hashed(value, memo)[1]),
    randomize(value, source, memo = forgetful(source)) {
      const [hashFunction, bucket] = hashed(value, memo);
      return index(hashFunction * prime + chain.respond(bucket, memo, source), points * prime);
    },
  };
}

/**
 * The pool of at most `functions` functions with the smallest variance; if none fits, the smallest
 * pool.
 */
function poolOf(settings: Arguments, categories: number): { space: Geometry; chain: Chained } {
  const maxFunctions = wholeOf(settings, "functions", 3, 4096, 64);
  const spaces = primes(Math.max(maxFunctions, 2 * Math.floor(Math.sqrt(categories)) + 3)).map(
    (prime) => {
      let dimensions = 2;
      while (prime ** dimensions < categories) dimensions += 1;
      return new Geometry(prime, dimensions);
    },
  );
  const allowed = Math.max(maxFunctions, Math.min(...spaces.map(({ points }) => points)));
  const candidates = spaces
    .filter(({ points }) => points <= allowed)
    .map((space) => {
      const chain = chained(settings, space.prime);
      const collide = fraction(BigInt(space.onOne), BigInt(space.points));
      const q = plus(chain.lie, times(collide, minus(chain.truth, chain.lie)));
      const gap = minus(chain.truth, q);
      const spread = toNumber(dividedBy(times(q, minus(fraction(1n), q)), times(gap, gap)));
      return { space, chain, spread };
    });
  return candidates.reduce((bestSpace, candidate) => {
    const less =
      candidate.spread - bestSpace.spread || candidate.space.points - bestSpace.space.points;
    return less < 0 ? candidate : bestSpace;
  });
}

/** A randomizer of two steps over categories: the thresholds of both, and the resulting losses. */
interface Chained {
  /** The probabilities of the true category, and of each other one, after both steps. */
  readonly truth: Fraction;
  readonly lie: Fraction;
  readonly privacyLoss: number;
  readonly permanentLoss: number;
  readonly respond: (value: number, memo: Memo, source: BitSource) => number;
}

function chained(settings: Arguments, categories: number): Chained {
  const otherCount = fraction(BigInt(categories - 1));
  const [report, forever] = odds(settings);
  const lasting = keepChance(forever, categories);
  const truthChance = chanceOf(lasting);
  const lied = dividedBy(chanceOf(ONE - lasting), otherCount);
  // After both steps, the probabilities of the true value and of another one are linear in the
  // probability that the second step keeps its value. That probability is chosen so that their
  // ratio is exactly `report`.
  const [truthSlope, lieOffset] = [minus(truthChance, lied), lied];
  const lieSlope = dividedBy(minus(lied, truthChance), otherCount);
  const lieLimit = dividedBy(
    plus(truthChance, times(minus(otherCount, fraction(1n)), lied)),
    otherCount,
  );
  // PRIVACY: rounded down, towards uniform.
  const freshThreshold = atMost(
    dividedBy(
      minus(times(report, lieLimit), lieOffset),
      minus(truthSlope, times(report, lieSlope)),
    ),
  );
  const truth = plus(lieOffset, times(chanceOf(freshThreshold), truthSlope));
  const lie = plus(lieLimit, times(chanceOf(freshThreshold), lieSlope));
  return {
    truth,
    lie,
    privacyLoss: logAtLeast(dividedBy(truth, lie)),
    permanentLoss: loss(lasting, categories),
    respond(value, memo, source) {
      // PRIVACY: one permanent value per value, for as long as the device keeps its secret.
      const coins = memo.coins(permanent(packedIndex(value)));
      const permanentValue = respond(value, lasting, categories, coins);
      return respond(permanentValue, freshThreshold, categories, source);
    },
  };
}

/** Longitudinal optimized unary encoding. Arcolezi, Couchot, Al Bouna, Xiao (2022). */
export function longUnary(settings: Arguments): Randomizer & Permanent {
  const categories = categoriesOf(settings);
  const [report, forever] = odds(settings);
  const rare = atLeast(dividedBy(fraction(1n), plus(forever, fraction(1n))));
  const lit = chanceOf(rare);
  const slope = minus(fraction(1n), times(fraction(2n), lit));
  // PRIVACY: rounded up, so that a true 0 is sent as 1 with a probability of at least 1 / (report +
  // 1).
  const flip = atLeast(
    dividedBy(minus(dividedBy(fraction(1n), plus(report, fraction(1n))), lit), slope),
  );
  const oneChance = plus(lit, times(chanceOf(flip), slope));
  const key = (value: unknown) => packedIndex(indexIn(categories, value));
  return {
    ...vector(categories),
    privacyLoss: logAtLeast(dividedBy(minus(fraction(1n), oneChance), oneChance)),
    permanentLoss: logAtLeast(fraction(ONE - rare, rare)),
    permanentKey: key,
    randomize(value, source, memo = forgetful(source)) {
      const category = indexIn(categories, value);
      // PRIVACY: one permanent vector per value, for as long as the device keeps its secret.
      const permanentBits = fairAt(
        category,
        rare,
        categories,
        memo.coins(permanent(key(category))),
      );
      return packed(permanentBits ^ source.mask(flip, categories), vectorBytes(categories));
    },
  };
}

/**
 * Fractions just below the exponentials of epsilon (one report) and permanent_epsilon (all reports
 * of one value).
 */
function odds(settings: Arguments): [Fraction, Fraction] {
  const forever = numberOf(settings, "permanent_epsilon");
  if (!(settings.epsilon < forever))
    throw new BadParameter("epsilon is not below permanent_epsilon");
  return [expAtMost(settings.epsilon), expAtMost(forever)];
}
