/**
 * Hashes strings to positions, for all mechanisms over strings.
 *
 * MurmurHash3 x64/128 (Austin Appleby, public domain), as the aggregator computes it. A position is
 * one of the hash's little-endian words of 32 bits, modulo the number of positions.
 */
import { ValueOutOfDomain } from "../errors.js";
import type { Bytes } from "./packing.js";

const MAX_STRING_BYTES = 4096;
const WORDS = 4; // positions taken from one 128-bit hash
const BLOCK_BYTES = 16;
const [C1, C2] = [0x87c37b91114253d5n, 0x4cf5ad432745937fn];
const ENCODER = new TextEncoder();

/**
 * The UTF-8 bytes of a string.
 *
 * @throws ValueOutOfDomain the value is not a string, or too long; the message never shows it.
 */
export function utf8Bytes(value: unknown): Bytes {
  if (typeof value !== "string") throw new ValueOutOfDomain("value is not a string");
  if (/\p{Surrogate}/u.test(value)) throw new ValueOutOfDomain("value is not encodable as UTF-8");
  const string = ENCODER.encode(value);
  if (string.length > MAX_STRING_BYTES) {
    throw new ValueOutOfDomain(`value is longer than ${MAX_STRING_BYTES} bytes`);
  }
  return string;
}

/** The position in [0, size) of a string under a seed: the first word of its hash. */
export function position(string: Uint8Array, seed: number, size: number): number {
  return word(digest(string, seed), 0) % size;
}

/**
 * `hashes` positions in [0, size), not necessarily distinct: words of the hashes under the seeds 2
 * cohort and 2 cohort + 1.
 */
export function positions(string: Uint8Array, cohort: number, hashes: number, size: number) {
  const blocks = [digest(string, 2 * cohort), digest(string, 2 * cohort + 1)] as const;
  return Array.from({ length: hashes }, (_, index) => {
    return word(index < WORDS ? blocks[0] : blocks[1], index % WORDS) % size;
  });
}

/** One of the four words of 32 bits of a digest. */
export function word(digest: readonly [bigint, bigint], index: number): number {
  return Number(((index < 2 ? digest[0] : digest[1]) >> (index & 1 ? 32n : 0n)) & 0xffffffffn);
}

/** The hash of a string under a seed: two words of 64 bits that behave as if independent. */
export function digest(string: Uint8Array, seed: number): readonly [bigint, bigint] {
  const view = new DataView(string.buffer, string.byteOffset, string.byteLength);
  let [h1, h2] = [BigInt(seed), BigInt(seed)];
  const blocks = Math.floor(string.length / BLOCK_BYTES);
  for (let block = 0; block < blocks; block += 1) {
    h1 ^= mixBlock(view.getBigUint64(BLOCK_BYTES * block, true), 31n, C1, C2);
    h1 = wrapped((rotateLeft(h1, 27n) + h2) * 5n + 0x52dce729n);
    h2 ^= mixBlock(view.getBigUint64(BLOCK_BYTES * block + 8, true), 33n, C2, C1);
    h2 = wrapped((rotateLeft(h2, 31n) + h1) * 5n + 0x38495ab5n);
  }
  const tail = new DataView(new ArrayBuffer(BLOCK_BYTES));
  new Uint8Array(tail.buffer).set(string.subarray(BLOCK_BYTES * blocks));
  h2 ^= mixBlock(tail.getBigUint64(8, true), 33n, C2, C1);
  h1 ^= mixBlock(tail.getBigUint64(0, true), 31n, C1, C2);
  h1 ^= BigInt(string.length);
  h2 ^= BigInt(string.length);
  h1 = wrapped(h1 + h2);
  h2 = wrapped(h2 + h1);
  [h1, h2] = [scattered(h1), scattered(h2)];
  h1 = wrapped(h1 + h2);
  return [h1, wrapped(h2 + h1)];
}

function mixBlock(block: bigint, turns: bigint, firstFactor: bigint, secondFactor: bigint): bigint {
  return wrapped(rotateLeft(wrapped(block * firstFactor), turns) * secondFactor);
}

function scattered(k: bigint): bigint {
  k = wrapped((k ^ (k >> 33n)) * 0xff51afd7ed558ccdn);
  k = wrapped((k ^ (k >> 33n)) * 0xc4ceb9fe1a85ec53n);
  return k ^ (k >> 33n);
}

function rotateLeft(k: bigint, count: bigint): bigint {
  return wrapped(k << count) | (k >> (64n - count));
}

function wrapped(k: bigint): bigint {
  return BigInt.asUintN(64, k);
}
