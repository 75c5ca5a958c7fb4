/** Coins from a key, for permanent responses. As client/hubbub/mechanisms/random_bits.py. */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

import { BadParameter } from "../errors.js";
import { drawBelow, drawMask, type BitSource, type Draw } from "./random_bits.js";
import { concatenated, unpacked } from "./packing.js";

const BLOCK_BYTES = 32; // one HMAC-SHA256

/**
 * Coins that a key determines: the same key gives the same draws, forever.
 *
 * HMAC-SHA256 in counter mode. Without the key they cannot be distinguished from random coins.
 */
export class KeyedBits implements BitSource {
  #counter = 0n;
  #rest = 0n;
  #leftBits = 0;
  readonly #draw: Draw = (bits) => this.#drawn(bits);

  /** @throws BadParameter the key is shorter than 32 bytes. */
  constructor(readonly key: Uint8Array) {
    if (!(key instanceof Uint8Array && key.length >= BLOCK_BYTES)) {
      throw new BadParameter(`a key is not a Uint8Array of ${BLOCK_BYTES} bytes or more`);
    }
  }

  /** As BitSource says. */
  chance(threshold: bigint): boolean {
    return drawMask(this.#draw, threshold, 1) === 1n;
  }

  /** As BitSource says. */
  below(limit: bigint): bigint {
    return drawBelow(this.#draw, limit);
  }

  /** As BitSource says. */
  mask(threshold: bigint, width: number): bigint {
    return drawMask(this.#draw, threshold, width);
  }

  #drawn(bits: number): bigint {
    const blocks: Uint8Array[] = [];
    let extraBits = 0;
    for (; this.#leftBits + extraBits < bits; extraBits += 8 * BLOCK_BYTES) {
      const counter = new DataView(new ArrayBuffer(8));
      counter.setBigUint64(0, this.#counter);
      blocks.push(hmac(sha256, this.key, new Uint8Array(counter.buffer)));
      this.#counter += 1n;
    }
    this.#rest |= unpacked(concatenated(...blocks)) << BigInt(this.#leftBits);
    this.#leftBits += extraBits - bits;
    const answer = BigInt.asUintN(bits, this.#rest);
    this.#rest >>= BigInt(bits);
    return answer;
  }
}
