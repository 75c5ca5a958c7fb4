/**
 * Pairs of parts: tell two of several answers together, or three, with all of epsilon, to count
 * tables.
 *
 * A value is a number: the places in its parts, the last counting fastest. Source and estimator:
 * client/hubbub/mechanisms/pairs.py.
 */
import { BadParameter } from "../errors.js";
import { pick } from "./bits.js";
import { index } from "./listed.js";
import { indexBytes } from "./packing.js";
import { responseOver } from "./projective.js";
import { indexIn, wholeOf, type Arguments, type Randomizer } from "./randomizer.js";

const MAX_PARTS = 8;
const MAX_TABLE = 2 ** 16;

/** `pairs`: one random pair of parts of so many values each, or triple. */
export function pairedParts(given: Arguments): Randomizer {
  const { epsilon, sizes } = given;
  const ways = wholeOf(given, "ways", 2, 3, 2);
  const descending = [...sizes].sort((one, other) => other - one);
  const largest = descending.slice(0, ways).reduce((product, size) => product * size, 1);
  const whole = sizes.every((size) => Number.isInteger(size) && size >= 2);
  if (!(whole && sizes.length >= ways && sizes.length <= MAX_PARTS && largest <= MAX_TABLE)) {
    throw new BadParameter("parts are too few, too many, or too large");
  }
  const tables = tablesOf(sizes.length, ways);
  const response = responseOver(epsilon, largest);
  const cells = tables.length * response.points;
  const all = sizes.reduce((product, size) => product * size, 1);
  return {
    payloadBytes: indexBytes(cells),
    privacyLoss: response.privacyLoss,
    permanentLoss: Infinity,
    check: (value) => void indexIn(all, value),
    randomize(value, source) {
      const places = placesOf(indexIn(all, value), sizes);
      const group = pick(source, tables.length); // PRIVACY: drawn without a look at the value
      const told = tables[group] ?? [];
      const cell = told.reduce((sum, part) => sum * (sizes[part] ?? 0) + (places[part] ?? 0), 0);
      return index(group * response.points + response.respond(cell, source), cells);
    },
  };
}

/** Every `ways` of so many parts, from one on, ascending. */
function tablesOf(parts: number, ways: number, first = 0): number[][] {
  if (!ways) return [[]];
  return Array.from({ length: parts - first }, (_, at) => first + at).flatMap((one) =>
    tablesOf(parts, ways - 1, one + 1).map((others) => [one, ...others]),
  );
}

function placesOf(value: number, sizes: readonly number[]): number[] {
  let left = value;
  const places = [...sizes].reverse().map((size) => {
    const place = left % size;
    left = Math.floor(left / size);
    return place;
  });
  return places.reverse();
}
