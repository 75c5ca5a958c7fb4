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
const MOST_VARINT_BYTES = 10;

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
  const varint = (): number => {
    let value = 0;
    for (let byte = 0; byte < MOST_VARINT_BYTES; byte += 1) {
      const digits = message[offset];
      if (digits === undefined) throw new RangeError("a message ends too soon");
      offset += 1;
      value += (digits & 0x7f) * 2 ** (7 * byte);
      if (digits < 0x80) return value;
    }
    throw new RangeError("a number is too long");
  };
  const take = (size: number): Uint8Array => {
    if (offset + size > message.length) throw new RangeError("a message ends too soon");
    offset += size;
    return message.subarray(offset - size, offset);
  };
  while (offset < message.length) {
    const tag = varint();
    const [field, type] = [Math.floor(tag / 8), tag % 8];
    if (!field) throw new RangeError("a field has no number");
    if (type === VARINT) yield [field, varint()];
    else if (type === DELIMITED) yield [field, take(varint())];
    else take(FIXED.get(type) ?? Infinity);
  }
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return [...bytes, value];
}
