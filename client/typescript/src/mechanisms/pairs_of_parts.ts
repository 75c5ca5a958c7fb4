/**
 * Pairs of parts: tell two of several answers together, or three, or all, with all of epsilon, to
 * count tables.
 *
 * A value is a number: the places in its parts, the last counting fastest. Source and estimator:
 * client/hubbub/mechanisms/pairs_of_parts.py.
 */
import { BadParameter } from "../errors.js";
import { pick } from "./random_bits.js";
import { index } from "./randomized_response.js";
import { indexBytes } from "./packing.js";
import { responseOver } from "./projective.js";
import { indexIn, wholeOf, type Arguments, type Randomizer } from "./randomizer.js";

const MAX_PARTS = 8;
const MAX_DRAWN = 3;
const MAX_TABLE = 2 ** 16;

/** `pairs`: one random pair of parts of so many values each, or triple, or all parts. */
export function pairedParts(settings: Arguments): Randomizer {
  const { epsilon, sizes } = settings;
  const width = wholeOf(settings, "ways", 2, MAX_PARTS, 2);
  const descending = [...sizes].sort((first, second) => second - first);
  const largestTable = descending.slice(0, width).reduce((product, size) => product * size, 1);
  const areWhole = sizes.every((size) => Number.isInteger(size) && size >= 2);
  const fits = width <= MAX_DRAWN || width === sizes.length;
  if (!(
    areWhole &&
    fits &&
    sizes.length >= width &&
    sizes.length <= MAX_PARTS &&
    largestTable <= MAX_TABLE
  )) {
    throw new BadParameter("parts are too few, too many, or too large");
  }
  const tables = tablesOf(sizes.length, width);
  const response = responseOver(epsilon, largestTable);
  const cells = tables.length * response.points;
  const cellCount = sizes.reduce((product, size) => product * size, 1);
  return {
    payloadBytes: indexBytes(cells),
    privacyLoss: response.privacyLoss,
    permanentLoss: Infinity,
    namedCells: tables.length === 1 && response.namesOne ? response.points : 0,
    check: (value) => void indexIn(cellCount, value),
    randomize(value, source) {
      const places = placesOf(indexIn(cellCount, value), sizes);
      const group = pick(source, tables.length); // PRIVACY: drawn without a look at the value
      const table = tables[group] ?? [];
      const cell = table.reduce((sum, part) => sum * (sizes[part] ?? 0) + (places[part] ?? 0), 0);
      return index(group * response.points + response.respond(cell, source), cells);
    },
  };
}

/** Every `ways` of so many parts, from one on, ascending. */
function tablesOf(parts: number, width: number, firstPart = 0): number[][] {
  if (!width) return [[]];
  return Array.from({ length: parts - firstPart }, (_, index) => firstPart + index).flatMap(
    (part) => tablesOf(parts, width - 1, part + 1).map((otherParts) => [part, ...otherParts]),
  );
}

function placesOf(value: number, sizes: readonly number[]): number[] {
  let remainder = value;
  const places = [...sizes].reverse().map((size) => {
    const place = remainder % size;
    remainder = Math.floor(remainder / size);
    return place;
  });
  return places.reverse();
}
