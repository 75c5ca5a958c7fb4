/**
 * Encodes an HTTP request and decodes a response as bytes of known length (RFC 9292). Our messages
 * have no trailer fields.
 */
import { TryAgain } from "../errors.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import type { Answer } from "./submission.js";

const [REQUEST, RESPONSE] = [0, 1];
const FINAL = 200;
const ENCODER = new TextEncoder();

/** The bytes of a POST, padded with zeros to a multiple of `step` bytes. */
export function writePost(
  authority: string,
  path: string,
  type: string,
  content: Bytes,
  step: number,
): Bytes {
  const control = ["POST", "https", authority, path].map((part) => lengthy(ENCODER.encode(part)));
  const headers = concatenated(
    lengthy(ENCODER.encode("content-type")),
    lengthy(ENCODER.encode(type)),
  );
  const parts = [varint(REQUEST), ...control, lengthy(headers), lengthy(content), varint(0)];
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  return concatenated(...parts, new Uint8Array((step - (size % step)) % step));
}

/**
 * The final response in a message. @throws TryAgain the message is not a response, as a gateway
 * would send it.
 */
export function readAnswer(message: Uint8Array): Answer {
  let offset = 0;
  const number = (): number => {
    const size = 2 ** ((message[offset] ?? 0) >> 6);
    return take(size).reduce((sum, byte, place) => sum * 256 + (place ? byte : byte & 0x3f), 0);
  };
  const take = (size: number): Uint8Array => {
    if (!(offset + size <= message.length)) throw new TryAgain("no_gateway");
    offset += size;
    return message.subarray(offset - size, offset);
  };
  const headers: Record<string, string> = {};
  const fields = (end: number, isHeader: boolean): void => {
    while (offset < end) {
      const [name, value] = [take(number()), take(number())];
      if (isHeader) headers[new TextDecoder().decode(name)] = new TextDecoder().decode(value);
    }
  };
  if (number() !== RESPONSE) throw new TryAgain("no_gateway");
  for (;;) {
    const status = number();
    const size = offset < message.length ? number() : 0;
    fields(offset + size, status >= FINAL);
    if (status < FINAL) continue;
    return { status, headers, body: offset < message.length ? take(number()) : new Uint8Array() };
  }
}

function lengthy(bytes: Uint8Array): Bytes {
  return concatenated(varint(bytes.length), bytes);
}

/** The encoding of a whole number in [0, 2**30) (RFC 9000, section 16). */
function varint(number: number): Bytes {
  if (number < 2 ** 6) return Uint8Array.of(number);
  const [size, bits] = number < 2 ** 14 ? [2, 1] : [4, 2];
  const bytes = new Uint8Array(size);
  let remainder = number;
  for (let place = size - 1; place >= 0; place -= 1) {
    bytes[place] = remainder % 256;
    remainder = Math.floor(remainder / 256);
  }
  bytes[0] = (bytes[0] ?? 0) | (bits << 6);
  return bytes;
}
