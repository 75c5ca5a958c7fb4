/**
 * Packs whole numbers into the bytes of payloads, little-endian, as
 * `client/hubbub/mechanisms/layout.py`.
 */

/** Bytes with a buffer of their own, which no other thread shares. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** The little-endian bytes of a number. */
export function packed(number: bigint, bytes: number): Bytes {
  const hex = number.toString(16).padStart(2 * bytes, "0");
  return Uint8Array.from({ length: bytes }, (_, index) => {
    const end = hex.length - 2 * index;
    return parseInt(hex.slice(end - 2, end), 16);
  });
}

/** The number in little-endian bytes. */
export function unpacked(bytes: Uint8Array): bigint {
  let hex = "0x0";
  for (let index = bytes.length - 1; index >= 0; index -= 1) {
    hex += (bytes[index] ?? 0).toString(16).padStart(2, "0");
  }
  return BigInt(hex);
}

/** The number of bytes for an index in [0, size). */
export function indexBytes(size: number): number {
  return Math.max(1, Math.ceil(bitLength(size - 1) / 8));
}

/** The number of bytes for a vector of bits. */
export function vectorBytes(bits: number): number {
  return Math.ceil(bits / 8);
}

/** The number of binary digits of a whole number >= 0; 0 has none. */
export function bitLength(number: number | bigint): number {
  return number ? number.toString(2).length : 0;
}

/** All parts in one array, in order. */
export function concatenated(...parts: readonly Uint8Array[]): Bytes {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}
