/**
 * Projective geometry response: a report is one index; near-optimal at every epsilon.
 *
 * Source and estimator: client/hubbub/mechanisms/projective.py.
 */
import { pick, type BitSource } from "./random_bits.js";
import { fraction, minus, dividedBy, plus, times, toNumber, type Fraction } from "./fraction.js";
import { Geometry, primes } from "./projective_geometry.js";
import { index } from "./randomized_response.js";
import { indexBytes } from "./packing.js";
import { atMost, chanceOf, expAtMost, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, indexIn, type Arguments, type Randomizer } from "./randomizer.js";

// The aggregator has the same limits on totals and on the work to compute them.
const MAX_POINTS = 2 ** 22;
const MAX_WORK = 2 ** 29;
const MAX_PRIME = 4099;

/**
 * `projective` over categories, as a number; other mechanisms build on it and add their own part.
 */
export interface Response {
  /** The number of possible responses. */
  readonly points: number;
  /** Whether each number stands for one of the values. */
  readonly namesOne: boolean;
  readonly privacyLoss: number;
  readonly respond: (value: number, source: BitSource) => number;
}

/** `projective`. Feldman, Nelson, Nguyen, Talwar (ICML 2022), section 3. */
export function projectiveResponse(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  const { points, privacyLoss, respond } = responseOver(settings.epsilon, categories);
  return {
    payloadBytes: indexBytes(points),
    privacyLoss,
    permanentLoss: Infinity,
    check: (value) => void indexIn(categories, value),
    randomize: (value, source) => index(respond(indexIn(categories, value), source), points),
  };
}

/** The response over [0, categories). */
export function responseOver(epsilon: number, categories: number): Response {
  const odds = expAtMost(epsilon);
  const space = bestGeometry(odds, categories);
  const keep = keptIn(odds, space);
  const { prime, dimensions, points, onOne } = space;
  const offPlane = BigInt(points - onOne);
  return {
    points,
    namesOne: onOne === 1,
    privacyLoss: logAtLeast(fraction(keep * offPlane, (ONE - keep) * BigInt(onOne))),
    respond(value, source) {
      const plane = space.vector(value);
      // All coordinates except one are free. The remaining coordinate, at which the plane has its
      // 1, determines the inner product: 0 for a point on the plane, where the coordinates must not
      // all be 0, and another number for a point off the plane.
      let [freeNumber, product] = [0, 0];
      const points = prime ** (dimensions - 1);
      if (source.chance(keep)) {
        freeNumber = 1 + pick(source, points - 1);
      } else {
        const number = pick(source, points * (prime - 1));
        freeNumber = Math.floor(number / (prime - 1));
        product = 1 + (number % (prime - 1));
      }
      const pivot = plane.indexOf(1);
      const vector = plane.map((planeCoordinate, index) => {
        if (index === pivot) return 0;
        const coordinate = freeNumber % prime;
        freeNumber = Math.floor(freeNumber / prime);
        product -= planeCoordinate * coordinate;
        return coordinate;
      });
      vector[pivot] = ((product % prime) + prime) % prime;
      return space.point(vector);
    },
  };
}

/** PRIVACY: rounded down, towards uniform. */
function keptIn(odds: Fraction, { points, onOne }: Geometry): bigint {
  const onePlaneWeight = times(odds, fraction(BigInt(onOne)));
  return atMost(dividedBy(onePlaneWeight, plus(onePlaneWeight, fraction(BigInt(points - onOne)))));
}

/**
 * The geometry with the smallest variance among those with a number for each category; a tie goes
 * to the smallest prime.
 */
function bestGeometry(odds: Fraction, categories: number): Geometry {
  let [smallest, minVariance]: [Geometry | undefined, number] = [undefined, Infinity];
  for (const prime of primes(MAX_PRIME)) {
    let dimensions = 2;
    while ((prime ** dimensions - 1) / (prime - 1) < categories) dimensions += 1;
    const space = new Geometry(prime, dimensions);
    if (space.points > MAX_POINTS || space.points * prime * dimensions > MAX_WORK) continue;
    const spread = varianceIn(odds, space);
    if (spread < minVariance) [smallest, minVariance] = [space, spread];
  }
  if (!smallest) throw new RangeError("no geometry numbers so many values");
  return smallest;
}

/**
 * The variance of one report's contribution to the estimate of a value that the device does not
 * have.
 */
function varianceIn(odds: Fraction, space: Geometry): number {
  const { points, onOne, onTwo } = space;
  const keep = keptIn(odds, space);
  const truthWeight = times(chanceOf(keep), fraction(BigInt(onTwo), BigInt(onOne)));
  const falsely = times(
    chanceOf(ONE - keep),
    fraction(BigInt(onOne - onTwo), BigInt(points - onOne)),
  );
  const q = plus(truthWeight, falsely);
  const gap = minus(chanceOf(keep), q);
  return toNumber(dividedBy(times(q, minus(fraction(1n), q)), times(gap, gap)));
}
