/**
 * Codes of directions: a vector is told by one word of a public book that lies near it.
 *
 * What floats decide is worked out as in Python, to the last digit (./portable_floats.ts). Source, guarantee and
 * estimator: client/hubbub/mechanisms/vector_codes.py.
 */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import { length, product } from "./portable_floats.js";
import { pick, type BitSource } from "./random_bits.js";
import { checkCells } from "./cells.js";
import { book, topSums } from "./direction_pool.js";
import { exact, fraction, dividedBy, plus, times, toNumber } from "./fraction.js";
import { index } from "./randomized_response.js";
import { indexBytes } from "./packing.js";
import { atMost, expAtMost, logAtLeast, ONE } from "./probability.js";
import { numberOf, wholeOf, type Arguments, type Randomizer } from "./randomizer.js";

const MAX_DIMENSIONS = 2 ** 10;
const MAX_LENGTH = 1e12;
// How far from 1 the square of a unit vector's length may be, of floats added up anywhere.
const CLOSE = 1e-6;

/** Where a vector points, at length 1. turning: the chance of its opposite, as a threshold. */
interface Direction {
  readonly numbers: readonly number[];
  readonly turning: bigint | null;
}

/** `vector.codes`. Shah et al. (AISTATS 2022); Isik et al. (2023); Ye, Barg (2018). */
export function vectorCodes(settings: Arguments): Randomizer {
  const { epsilon, categories, seed = "0" } = settings;
  const dimensions = wholeOf(settings, "dimensions", 2, MAX_DIMENSIONS, categories);
  const words = wholeOf(settings, "words", 2, 1 << 10, 64);
  const books = wholeOf(settings, "books", 1, 1 << 16, 1 << 14);
  const maxLength = "max_length" in settings.parameters ? numberOf(settings, "max_length") : 1;
  if (!(maxLength > 0 && maxLength <= MAX_LENGTH)) {
    throw new BadParameter(`max_length ${maxLength} is outside (0, ${MAX_LENGTH}]`);
  }
  checkCells(words * books, "words and books");
  const odds = expAtMost(epsilon);
  const nearCount = nearest(toNumber(odds), words, dimensions);
  const farCount = words - nearCount;
  const nearWeight = times(fraction(BigInt(nearCount)), odds);
  const keep = atMost(dividedBy(nearWeight, plus(nearWeight, fraction(BigInt(farCount))))); // PRIVACY: down
  const size = words * books;
  return {
    payloadBytes: indexBytes(size),
    privacyLoss: logAtLeast(fraction(keep * BigInt(farCount), (ONE - keep) * BigInt(nearCount))),
    isUneven: 2 * nearCount >= words,
    permanentLoss: Infinity,
    check: (value) => void vectorIn(dimensions, maxLength, value),
    randomize(value, source) {
      const { numbers, turning } = directionOf(vectorIn(dimensions, maxLength, value), maxLength);
      const sign = turning !== null && source.chance(turning) ? -1 : 1;
      const number = pick(source, books);
      const direction = numbers.map((x) => sign * x);
      const order = ordered(book(seed, number, words, dimensions), direction);
      // PRIVACY: the one coin that looks at epsilon; which words are near is the device's affair.
      const place = placeOf(source, keep, nearCount, farCount);
      return index(number * words + (order[place] ?? 0), size);
    },
  };
}

/**
 * The largest of its numbers, without its sign, and the vector over it; of nothing zeros.
 *
 * Squares of what is tiny are 0, and of what is huge no float: so lengths are of the latter.
 */
export function scaleOut(vector: readonly number[]): [largest: number, scaled: readonly number[]] {
  const maxMagnitude = vector.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
  return [maxMagnitude, vector.map((x) => (maxMagnitude ? x / maxMagnitude : 0))];
}

function placeOf(source: BitSource, keep: bigint, nearCount: number, farCount: number): number {
  return source.chance(keep) ? pick(source, nearCount) : nearCount + pick(source, farCount);
}

/** @throws ValueOutOfDomain it is none. */
function vectorIn(dimensions: number, maxLength: number, value: unknown): readonly number[] {
  const numbers: readonly unknown[] = Array.isArray(value) ? [...(value as unknown[])] : [];
  if (numbers.length === dimensions && numbers.every((number) => Number.isFinite(number))) {
    const [maxMagnitude, scaled] = scaleOut(numbers as readonly number[]);
    if (maxMagnitude * length(scaled) <= maxLength * (1 + CLOSE))
      return numbers as readonly number[];
  }
  throw new ValueOutOfDomain(
    `value is not a vector of ${dimensions} numbers of length ${maxLength} or less`,
  );
}

function directionOf(vector: readonly number[], maxLength: number): Direction {
  const [maxMagnitude, quotient] = scaleOut(vector);
  // Nothing has no direction: any will do, turned every second time.
  const scaled = maxMagnitude ? quotient : vector.map((_, index) => (index ? 0 : 1));
  const scaledLength = length(scaled);
  const shortfall = 1 - scaledLength * (maxMagnitude / maxLength);
  const turning = shortfall > CLOSE ? atMost(exact(shortfall / 2)) : null;
  return { numbers: scaled.map((x) => x / scaledLength), turning };
}

/** The words of a book, the nearest to a direction first; of equals the earlier. */
function ordered(words: Int16Array, direction: readonly number[]): readonly number[] {
  const dimensions = direction.length;
  const products = Array.from({ length: words.length / dimensions }, (_, word) => {
    return product(direction, words.subarray(word * dimensions, (word + 1) * dimensions));
  });
  return [...products.keys()].sort(
    (first, second) => (products[second] ?? 0) - (products[first] ?? 0),
  );
}

/** How many words are near: of the least squared error. */
function nearest(odds: number, words: number, dimensions: number): number {
  const { sums, squares } = topSums(words);
  let [bestCount, minError] = [1, Infinity];
  for (const [index, sum] of sums.entries()) {
    const w = index + 1;
    const square = squares[index] ?? 0;
    const p = odds / (w * odds + words - w);
    const q = 1 / (w * odds + words - w);
    const m = ((p - q) * sum) / Math.sqrt(dimensions);
    const spread = p * square + q * (words - square);
    const error = (dimensions - 1 + spread) / (dimensions * m * m) - 1;
    if (error < minError) [bestCount, minError] = [w, error];
  }
  return bestCount;
}
