/** Uniform subsets, exactly: as `client/hubbub/mechanisms/subsets.py`. */
import type { BitSource } from "./bits.js";
import { fraction } from "./fraction.js";
import { atMost } from "./probability.js";

/**
 * A uniform subset of `count` of `size` positions, packed in an integer.
 *
 * Independent coins give about as many; what is too much is dropped, or what is missing added, at
 * random. No step prefers a position, so every subset of the size is as likely as any other.
 */
export function choose(size: number, count: number, source: BitSource): bigint {
  const chosen = source.mask(atMost(fraction(BigInt(count), BigInt(size))), size);
  const ones = members(chosen).length;
  if (ones > count) return without(chosen, ones - count, source);
  const everywhere = (1n << BigInt(size)) - 1n;
  return everywhere ^ without(everywhere ^ chosen, count - ones, source);
}

/** The positions in a packed subset, ascending. */
export function members(subset: bigint): number[] {
  const digits = subset.toString(2);
  const found: number[] = [];
  for (let at = digits.length - 1; at >= 0; at -= 1) {
    if (digits[at] === "1") found.push(digits.length - 1 - at);
  }
  return found;
}

/** `bits` less `drop` of its ones, picked uniformly. */
function without(bits: bigint, drop: number, source: BitSource): bigint {
  const left = members(bits);
  let ways = 1n;
  for (let taken = 0; taken < drop; taken += 1) ways *= BigInt(left.length - taken);
  // One number for all picks, as Python draws it.
  let picks = source.below(ways);
  for (let taken = 0; taken < drop; taken += 1) {
    const among = BigInt(left.length);
    const [gone] = left.splice(Number(picks % among), 1);
    picks /= among;
    bits ^= 1n << BigInt(gone ?? 0);
  }
  return bits;
}
