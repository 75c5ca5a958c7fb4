/**
 * The permanent step of mechanisms: drawn once for each device and value, and determined by the
 * device's secret.
 */
import { concatenated, packed, type Bytes } from "./packing.js";
import type { Coded, Memo } from "./randomizer.js";

/** A randomizer with a permanent step. */
export interface Permanent {
  permanentKey(value: Coded, memo: Memo): Bytes;
}

const ENCODER = new TextEncoder();

/** The bytes that name a purpose of coins. */
export function purpose(name: string): Bytes {
  return ENCODER.encode(name);
}

/** The purpose of a value's permanent coins. */
export function permanent(key: Uint8Array): Bytes {
  return concatenated(purpose("permanent"), key);
}

/** The key of the permanent response to a category. */
export function packedIndex(value: number): Bytes {
  return packed(BigInt(value), 4).reverse();
}
