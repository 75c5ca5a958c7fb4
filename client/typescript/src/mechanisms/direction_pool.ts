/**
 * Directions: a public pool of pseudorandom words, generated from a seed identically on every
 * machine.
 *
 * Sources: client/hubbub/mechanisms/direction_pool.py.
 */
import { shake128 } from "@noble/hashes/sha3.js";

import { survivalFunction, binomial, density } from "./portable_floats.js";

const UNIT = 4096; // the integer that represents one standard deviation
const STEPS = 4096;
const HALF = STEPS / 2;
// The range of the integral: a normal number outside it is rarer than 1e-15.
const FAR = 8;
const GRID = 400;
const CLOSE = 1e-11;
const ENCODER = new TextEncoder();

/**
 * The expected sums, and sums of squares, of the 1, 2, ... words - 1 largest of `words` normal
 * numbers.
 */
export interface TopSums {
  readonly sums: Float64Array;
  readonly squares: Float64Array;
}

let stepTable: Int16Array | undefined;
const tops = new Map<number, TopSums>();

/**
 * The means of a standard normal number within 4,096 equally likely parts, in units of 1/4,096,
 * scaled to variance 1.
 */
export function steps(): Int16Array {
  return (stepTable ??= stepsAnew());
}

/**
 * The words of one book, one after another: `dimensions` whole coordinates each, in units of
 * 1/4,096.
 */
export function book(seed: string, number: number, words: number, dimensions: number): Int16Array {
  const name = `hubbub directions 1 ${seed} ${dimensions} ${words} ${number}`;
  const randomBytes = shake128(ENCODER.encode(name), { dkLen: 2 * words * dimensions });
  const levels = steps();
  return Int16Array.from({ length: words * dimensions }, (_, index) => {
    const place = (randomBytes[2 * index] ?? 0) | ((randomBytes[2 * index + 1] ?? 0) << 8);
    return levels[place % STEPS] ?? 0;
  });
}

/**
 * The expected sums, computed in the same order as in Python: the number of near words depends on
 * their last digit.
 */
export function topSums(words: number): TopSums {
  let sums = tops.get(words);
  if (!sums) tops.set(words, (sums = topSumsAnew(words)));
  return sums;
}

function topSumsAnew(words: number): TopSums {
  const width = (2 * FAR) / GRID;
  const [sums, squares] = [new Float64Array(words - 1), new Float64Array(words - 1)];
  for (let place = 0; place <= GRID; place += 1) {
    const z = -FAR + place * width;
    const share = words * density(z) * width;
    const chances = binomial(words - 1, survivalFunction(z), survivalFunction(-z));
    let fewer = 0;
    for (let number = 0; number < words - 1; number += 1) {
      fewer += chances[number] ?? 0;
      const part = share * fewer;
      sums[number] = (sums[number] ?? 0) + z * part;
      squares[number] = (squares[number] ?? 0) + z * z * part;
    }
  }
  return { sums, squares };
}

/**
 * Computes the steps. No step lies within a thousandth of a rounding boundary, so every engine
 * rounds alike.
 */
function stepsAnew(): Int16Array {
  // The density at the lower edges of the upper half's parts; the last part has no upper edge.
  const edges = [density(0)];
  let z = 0;
  for (let part = 1; part < HALF; part += 1) {
    const chance = (HALF - part) / STEPS;
    // Newton's steps start below the root, where the function is convex, so they never overshoot.
    for (let step = 1; Math.abs(step) > CLOSE; z += step)
      step = (survivalFunction(z) - chance) / density(z);
    edges.push(density(z));
  }
  const means = edges.map((edge, part) => STEPS * (edge - (edges[part + 1] ?? 0)));
  const spread = Math.sqrt(means.reduce((sum, mean) => sum + mean * mean, 0) / HALF);
  const steps = new Int16Array(STEPS);
  for (const [part, mean] of means.entries()) {
    const step = Math.round((mean / spread) * UNIT);
    steps[HALF + part] = step;
    steps[HALF - 1 - part] = -step;
  }
  return steps;
}
