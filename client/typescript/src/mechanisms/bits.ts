/**
 * BitSource: the only door through which a coin enters.
 *
 * No float takes part: every answer is compared, digit by digit, with the 64 binary digits of a
 * probability, and comes true with exactly that chance.
 */
import { BadParameter } from "../errors.js";
import { DIGITS } from "./probability.js";

/** A supply of coins. Mechanisms see only these questions, so a test can answer them all. */
export interface BitSource {
  /** True with probability `threshold` / 2**64, exactly. */
  chance(threshold: bigint): boolean;
  /** Uniform in [0, limit), for a whole limit >= 1. */
  below(limit: number): number;
}

/** Asked for so many bits, answers an integer uniform over that many bits. */
export type Draw = (bits: number) => bigint;

/** Coins from the operating system, drawn anew at every question. */
export class SystemBits implements BitSource {
  /** As BitSource says. */
  chance(threshold: bigint): boolean {
    return system(Number(DIGITS)) < threshold;
  }

  /** As BitSource says. */
  below(limit: number): number {
    return drawBelow(system, limit);
  }
}

/**
 * Uniform in [0, limit).
 *
 * @throws BadParameter the limit is no whole number, or below 1.
 */
export function drawBelow(draw: Draw, limit: number): number {
  if (!(Number.isSafeInteger(limit) && limit >= 1)) {
    throw new BadParameter("a limit is no whole number from 1");
  }
  const bits = limit === 1 ? 0 : (limit - 1).toString(2).length;
  for (;;) {
    const answer = draw(bits);
    // At most one try in two fails.
    if (answer < BigInt(limit)) return Number(answer);
  }
}

function system(bits: number): bigint {
  const bytes = crypto.getRandomValues(new Uint8Array(Math.ceil(bits / 8)));
  const drawn = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return drawn >> BigInt(8 * bytes.length - bits);
}
