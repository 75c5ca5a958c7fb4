/**
 * Pairs of parts: tell two of several answers together, with all of epsilon, to count tables.
 *
 * A value is a number: the places in its parts, the last counting fastest. Source and estimator:
 * client/hubbub/mechanisms/pairs.py.
 */
import { BadParameter } from "../errors.js";
import { pick } from "./bits.js";
import { index } from "./listed.js";
import { indexBytes } from "./packing.js";
import { responseOver } from "./projective.js";
import { indexIn, type Arguments, type Randomizer } from "./randomizer.js";

const MAX_PARTS = 8;
const MAX_TABLE = 2 ** 16;

/** `pairs`: one random pair of parts of so many values each. */
export function pairedParts({ epsilon, sizes }: Arguments): Randomizer {
  const [largest = 0, second = 0] = [...sizes].sort((one, other) => other - one);
  const whole = sizes.every((size) => Number.isInteger(size) && size >= 2);
  if (!(whole && sizes.length >= 2 && sizes.length <= MAX_PARTS && largest * second <= MAX_TABLE)) {
    throw new BadParameter("parts are too few, too many, or too large");
  }
  const tables = sizes.flatMap((_, one) =>
    sizes.slice(one + 1).map((_, at) => [one, one + 1 + at]),
  );
  const response = responseOver(epsilon, largest * second);
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
      const [one = 0, other = 0] = tables[group] ?? [];
      const cell = (places[one] ?? 0) * (sizes[other] ?? 0) + (places[other] ?? 0);
      return index(group * response.points + response.respond(cell, source), cells);
    },
  };
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
