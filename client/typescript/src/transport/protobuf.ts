/**
 * Encodes and decodes the kinds of protobuf fields that a submission and its answer contain.
 *
 * Fields that are zero or empty are left out (proto3). A general library would be larger than all
 * mechanisms.
 */
import { concatenated, type Bytes } from "../mechanisms/packing.js";

const [VARINT, DELIMITED] = [0, 2];
const FIXED = new Map([
  [1, 8],
  [5, 4],
]);
const [TAG_BYTES, VALUE_BYTES] = [5, 10]; // most bytes, as in protobuf's own parsers
const MALFORMED = "a message is malformed";

/** A field that holds a whole number in [0, 2**32). */
export function numberField(field: number, value: number): Bytes {
  return Uint8Array.from(value ? [...varint(field * 8 + VARINT), ...varint(value)] : []);
}

/** A field that holds bytes, a text, or a message of these fields. */
export function bytesField(field: number, ...parts: readonly Uint8Array[]): Bytes {
  const value = concatenated(...parts);
  const { length } = value;
  if (!length) return value;
  return concatenated(
    Uint8Array.from([...varint(field * 8 + DELIMITED), ...varint(length)]),
    value,
  );
}

/**
 * The fields of a message in their order, as numbers or bytes. @throws RangeError the message is
 * invalid.
 */
export function* fieldsOf(message: Uint8Array): Generator<[number, number | Uint8Array]> {
  let offset = 0;
  const varint = (most = TAG_BYTES): number => {
    let value = 0;
    for (let byte = 0; byte < most; byte += 1) {
      const digits = message[offset] ?? NaN; // which no number ends with
      offset += 1;
      value += (digits & 0x7f) * 2 ** (7 * byte);
      if (digits < 0x80) return value;
    }
    throw new RangeError(MALFORMED);
  };
  const take = (size: number): Uint8Array => {
    offset += size;
    if (offset > message.length) throw new RangeError(MALFORMED);
    return message.subarray(offset - size, offset);
  };
  while (offset < message.length) {
    const tag = varint();
    const [field, type] = [Math.floor(tag / 8), tag % 8];
    if (!field || tag >= 2 ** 32) throw new RangeError(MALFORMED);
    if (type === VARINT) yield [field, varint(VALUE_BYTES)];
    else if (type === DELIMITED) yield [field, take(varint())];
    else take(FIXED.get(type) ?? Infinity);
  }
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return [...bytes, value];
}
