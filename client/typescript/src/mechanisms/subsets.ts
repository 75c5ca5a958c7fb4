/** Uniform subsets, exactly: as `client/hubbub/mechanisms/uniform_subsets.py`. */
import type { BitSource } from "./random_bits.js";
import { fraction } from "./fraction.js";
import { atMost } from "./probability.js";

/**
 * A uniform subset of `count` of `size` positions, packed in an integer.
 *
 * Independent coins give about `count` positions; then random positions are dropped or added. No
 * step prefers a position, so all subsets of the size are equally likely.
 */
export function choose(size: number, count: number, source: BitSource): bigint {
  const chosenBits = source.mask(atMost(fraction(BigInt(count), BigInt(size))), size);
  const oneCount = members(chosenBits).length;
  if (oneCount > count) return dropOnes(chosenBits, oneCount - count, source);
  const everywhere = (1n << BigInt(size)) - 1n;
  return everywhere ^ dropOnes(everywhere ^ chosenBits, count - oneCount, source);
}

/** The number of ways to choose `count` of `size` positions. */
export function binomial(size: number, count: number): bigint {
  let product = 1n;
  for (let step = 0; step < count; step += 1) {
    product = (product * BigInt(size - step)) / BigInt(step + 1);
  }
  return product;
}

/**
 * The subset of `count` of `size` positions with this number in [0, binomial(size, count)), packed.
 *
 * A uniform number gives a uniform subset. Lehmer (1964): subsets without the last position come
 * first.
 */
export function numbered(size: number, count: number, number: bigint): bigint {
  let [chosenBits, remaining] = [0n, binomial(size, count)];
  for (let position = size - 1; position >= 0; position -= 1) {
    const subsetsWithout = (remaining * BigInt(position + 1 - count)) / BigInt(position + 1);
    if (number >= subsetsWithout) {
      number -= subsetsWithout;
      chosenBits |= 1n << BigInt(position);
      remaining -= subsetsWithout;
      count -= 1;
    } else {
      remaining = subsetsWithout;
    }
  }
  return chosenBits;
}

/** The positions in a packed subset, ascending. */
export function members(subset: bigint): number[] {
  const digits = subset.toString(2);
  const positions: number[] = [];
  for (let index = digits.length - 1; index >= 0; index -= 1) {
    if (digits[index] === "1") positions.push(digits.length - 1 - index);
  }
  return positions;
}

/** `bits` without `drop` of its ones, which are chosen uniformly. */
function dropOnes(bits: bigint, drop: number, source: BitSource): bigint {
  const ones = members(bits);
  let orders = 1n;
  for (let step = 0; step < drop; step += 1) orders *= BigInt(ones.length - step);
  // One random number serves all choices, as in Python.
  let picks = source.below(orders);
  for (let draws = 0; draws < drop; draws += 1) {
    const remaining = BigInt(ones.length);
    const [position] = ones.splice(Number(picks % remaining), 1);
    picks /= remaining;
    bits ^= 1n << BigInt(position ?? 0);
  }
  return bits;
}
