/** The known answers that every SDK agrees with, and the coins of those of mechanisms. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

import { drawBelow, type BitSource } from "../src/mechanisms/bits.js";
import { DIGITS } from "../src/mechanisms/probability.js";

const FOLDER = new URL("../../../../tests/proofs/vectors/", import.meta.url);
const BLOCK_BITS = 256;

/** A file of known answers. */
export function known(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));
}

export function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** Coins fixed by a key, as `KeyedBits` of client/hubbub/mechanisms/bits.py. */
export class KeyedBits implements BitSource {
  #counter = 0n;
  #left = 0n;
  #bits = 0;

  constructor(readonly key: Uint8Array) {}

  /** Four digits at a time, the first one first: a fraction below the threshold is decided soon. */
  chance(threshold: bigint): boolean {
    if (threshold === 0n) return false;
    let last = 0n;
    while (!((threshold >> last) & 1n)) last += 1n;
    let digit = DIGITS;
    while (digit > last) {
      const rounds = Number(digit - last) < 4 ? Number(digit - last) : 4;
      const coins = this.#draw(rounds);
      for (let round = 0; round < rounds; round += 1) {
        digit -= 1n;
        const coin = (coins >> BigInt(round)) & 1n;
        if (coin !== ((threshold >> digit) & 1n)) return coin === 0n;
      }
    }
    return false;
  }

  below(limit: number): number {
    return drawBelow((bits) => this.#draw(bits), limit);
  }

  #draw(bits: number): bigint {
    while (this.#bits < bits) {
      const counter = Buffer.alloc(8);
      counter.writeBigUInt64BE(this.#counter);
      const block = createHmac("sha256", this.key).update(counter).digest().reverse();
      this.#left |= BigInt(`0x${block.toString("hex")}`) << BigInt(this.#bits);
      this.#bits += BLOCK_BITS;
      this.#counter += 1n;
    }
    const answer = BigInt.asUintN(bits, this.#left);
    this.#left >>= BigInt(bits);
    this.#bits -= bits;
    return answer;
  }
}
