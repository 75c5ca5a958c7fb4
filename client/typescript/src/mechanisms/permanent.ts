/** The permanent step of memoized mechanisms: drawn once per device and value, and kept by a secret. */
import { concatenated, packed, type Bytes } from "./packing.js";
import type { Coded, Memo } from "./randomizer.js";

/** A randomizer with a permanent step. */
export interface Permanent {
  permanentKey(value: Coded, memo: Memo): Bytes;
}

const TEXT = new TextEncoder();

/** A purpose of coins by its name. */
export function purpose(name: string): Bytes {
  return TEXT.encode(name);
}

/** The purpose of a value's permanent coins. */
export function permanent(key: Uint8Array): Bytes {
  return concatenated(purpose("permanent"), key);
}

/** What a permanent response to a category depends on. */
export function packedIndex(value: number): Bytes {
  return packed(BigInt(value), 4).reverse();
}
