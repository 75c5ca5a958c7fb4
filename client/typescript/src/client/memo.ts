/** The device's permanent coins. They are derived from its secret; nothing else is stored. */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

import type { BitSource } from "../mechanisms/random_bits.js";
import { KeyedBits } from "../mechanisms/keyed.js";
import { concatenated } from "../mechanisms/packing.js";
import type { Memo } from "../mechanisms/randomizer.js";

const ENCODER = new TextEncoder();
const TAG_LETTERS = 16;

/**
 * A device's permanent coins for one stream, as client/hubbub/client/state/secret.py makes them.
 *
 * HMAC-SHA256 under the secret separates streams and purposes; values are hashed first.
 */
export class DeviceMemo implements Memo {
  constructor(
    readonly secret: Uint8Array,
    readonly stream: string,
  ) {}

  /** The coins of this purpose, the same as long as the secret exists. */
  coins(purpose: Uint8Array): BitSource {
    return new KeyedBits(this.#key("coins", purpose));
  }

  /** A name for a permanent response, which only this device can compute; no value is stored. */
  tag(permanentKey: Uint8Array): string {
    const hex = Array.from(this.#key("tag", permanentKey), (b) => b.toString(16).padStart(2, "0"));
    return hex.join("").slice(0, TAG_LETTERS);
  }

  #key(use: string, purpose: Uint8Array): Uint8Array {
    // The purpose is hashed so that parts of any content cannot run into each other.
    const prefix = ENCODER.encode(`hubbub/1|${use}|${this.stream}|`);
    return hmac(sha256, this.secret, concatenated(prefix, sha256(purpose)));
  }
}

/** A device's permanent coins, by its secret in hexadecimal and the stream's name. */
export type MemoOf = (secret: string, stream: string) => DeviceMemo;

/** See MemoOf. */
export const memoOf: MemoOf = (secret, stream) => new DeviceMemo(secretBytes(secret), stream);

function secretBytes(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
