/**
 * Generalized randomized response (k-RR): keep the value, or name another one.
 *
 * Tells the truth with probability `keep` = e / (e + d - 1), rounded down; otherwise one of the other
 * d - 1 values, uniformly. Source: Kairouz, Bonawitz, Ramage (ICML 2016). Its estimator is
 * `client/hubbub/mechanisms/grr.py`.
 */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import type { BitSource } from "./bits.js";
import { atMost, expAtMost } from "./probability.js";

const MAX_CATEGORIES = 2 ** 20;

/** k-ary randomized response over [0, categories). */
export class GeneralizedRandomizedResponse {
  /** The probability of the truth, in multiples of 2**-64. */
  readonly keep: bigint;
  /** The length of every payload. */
  readonly payloadBytes: number;

  /**
   * epsilon: in nats.
   *
   * @throws BadParameter a number out of range.
   */
  constructor(
    epsilon: number,
    readonly categories: number,
  ) {
    if (!(Number.isInteger(categories) && categories >= 2 && categories <= MAX_CATEGORIES)) {
      throw new BadParameter(`categories are outside [2, ${MAX_CATEGORIES}]`);
    }
    const odds = expAtMost(epsilon);
    const others = BigInt(categories - 1) * odds.below;
    this.keep = atMost({ above: odds.above, below: odds.above + others }); // PRIVACY: towards uniform
    this.payloadBytes = Math.ceil((categories - 1).toString(2).length / 8);
  }

  /**
   * The payload of one value: an index, little-endian.
   *
   * @throws ValueOutOfDomain the value is outside [0, categories).
   */
  randomize(value: number, source: BitSource): Uint8Array<ArrayBuffer> {
    if (!(Number.isInteger(value) && value >= 0 && value < this.categories)) {
      throw new ValueOutOfDomain(`value is outside [0, ${this.categories})`);
    }
    if (source.chance(this.keep)) return this.#encode(value);
    const other = source.below(this.categories - 1); // skips the value itself
    return this.#encode(other + Number(other >= value));
  }

  #encode(index: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length: this.payloadBytes }, (_, at) => (index >>> (8 * at)) & 0xff);
  }
}
