/**
 * Hadamard response: a report is one index, and the estimator uses a fast transform.
 *
 * Source and estimator: client/hubbub/mechanisms/hadamard.py.
 */
import { pick } from "./random_bits.js";
import { index, keepChance, loss } from "./randomized_response.js";
import { bitLength, indexBytes } from "./packing.js";
import { expAtMost } from "./probability.js";
import { categoriesOf, indexIn, type Arguments, type Randomizer } from "./randomizer.js";

/** `hadamard`. Acharya, Sun, Zhang (AISTATS 2019), the scheme for high privacy. */
export function hadamardResponse(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  const size = 2 ** bitLength(categories);
  const keep = keepChance(expAtMost(settings.epsilon), 2);
  return {
    payloadBytes: indexBytes(size),
    privacyLoss: loss(keep, 2),
    permanentLoss: Infinity,
    check: (value) => void indexIn(categories, value),
    randomize(value, source) {
      // row 0 is +1 in every column and carries no information
      const row = indexIn(categories, value) + 1;
      const isTrue = source.chance(keep);
      // All bits of the column are free except one, which selects the half of the columns.
      const lowestBit = row & -row;
      const freeBits = pick(source, size / 2);
      const column = ((freeBits & -lowestBit) << 1) | (freeBits & (lowestBit - 1));
      return index(isNegative(row, column) === isTrue ? column ^ lowestBit : column, size);
    },
  };
}

/** Whether the entry of the Hadamard matrix is -1: row and column share an odd number of ones. */
export function isNegative(row: number, column: number): boolean {
  let odd = false;
  for (let remaining = row & column; remaining; remaining &= remaining - 1) odd = !odd;
  return odd;
}
