/**
 * BitSource: the only source of random coins, and its implementation by the operating system.
 *
 * It uses no floats: each draw compares random binary digits with the 64 digits of a probability,
 * and so is true with exactly that probability. As `client/hubbub/mechanisms/random_bits.py`.
 */
import { BadParameter } from "../errors.js";
import { bitLength, unpacked } from "./packing.js";
import { DIGITS, ONE } from "./probability.js";

/**
 * A source of coins. Mechanisms draw only through these three methods, so a test can enumerate all
 * outcomes.
 */
export interface BitSource {
  /** True with probability `threshold` / 2**64, exactly. */
  chance(threshold: bigint): boolean;
  /** Uniform in [0, limit), for a limit >= 1. */
  below(limit: bigint): bigint;
  /** `width` independent chances, packed in an integer: chance i is bit i. */
  mask(threshold: bigint, width: number): bigint;
}

/** Returns an integer that is uniform over `bits` bits. */
export type Draw = (bits: number) => bigint;

const BYTES_A_CALL = 65_536; // the maximum of one call of crypto.getRandomValues

/** Coins from the operating system; every draw is new. */
export class SystemBits implements BitSource {
  /** As BitSource says. */
  chance(threshold: bigint): boolean {
    return system(Number(DIGITS)) < threshold;
  }

  /** As BitSource says. */
  below(limit: bigint): bigint {
    return drawBelow(system, limit);
  }

  /** As BitSource says. */
  mask(threshold: bigint, width: number): bigint {
    return drawMask(system, threshold, width);
  }
}

/** A uniform whole number in [0, limit), as a number. */
export function pick(source: BitSource, limit: number): number {
  return Number(source.below(BigInt(limit)));
}

function system(bits: number): bigint {
  const bytes = new Uint8Array(Math.ceil(bits / 8));
  for (let index = 0; index < bytes.length; index += BYTES_A_CALL) {
    crypto.getRandomValues(bytes.subarray(index, index + BYTES_A_CALL));
  }
  return BigInt.asUintN(bits, unpacked(bytes));
}

/** Uniform in [0, limit). @throws BadParameter a limit below 1. */
export function drawBelow(draw: Draw, limit: bigint): bigint {
  if (limit < 1n) throw new BadParameter("a limit is below 1");
  const bits = bitLength(limit - 1n);
  for (;;) {
    const answer = draw(bits);
    // At most half of the tries fail.
    if (answer < limit) return answer;
  }
}

/**
 * Compares `width` random binary fractions with the threshold at once, first digits first.
 *
 * `undecided` holds the positions whose fraction equals the threshold so far. A position is decided
 * by the first digit that differs: true where it has 0 and the threshold 1. The digits after the
 * threshold's last 1 are all 0, and a fraction equal so far is then not below it.
 */
export function drawMask(draw: Draw, threshold: bigint, width: number): bigint {
  const wide = BigInt(width);
  const everywhere = (1n << wide) - 1n;
  if (threshold >= ONE) return everywhere;
  let [undecided, answer] = [everywhere, 0n];
  let digit = Number(DIGITS);
  const lastDigit = threshold ? bitLength(threshold & -threshold) : digit + 1;
  while (undecided && digit >= lastDigit) {
    // Each digit decides half of the undecided positions; with this many digits, seven of eight
    // masks need one draw.
    const rounds = Math.min(digit - lastDigit + 1, bitLength(width) + 3);
    let coins = draw(width * rounds);
    for (let round = 0; round < rounds; round += 1) {
      digit -= 1;
      const fraction = coins & everywhere;
      coins >>= wide;
      if ((threshold >> BigInt(digit)) & 1n) {
        answer |= undecided & ~fraction;
        undecided &= fraction;
      } else {
        undecided &= ~fraction;
      }
    }
  }
  return answer;
}
