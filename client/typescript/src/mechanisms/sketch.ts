/**
 * Mechanisms that hash a string with one of many functions to one of many buckets: `cms`, `hcms`
 * and `local_hash`.
 *
 * Sources and estimators: cms.py, hcms.py and local_hash.py of client/hubbub/mechanisms.
 */
import { BadParameter } from "../errors.js";
import { pick } from "./random_bits.js";
import { checkCells } from "./cells.js";
import { fraction } from "./fraction.js";
import { isNegative } from "./hadamard.js";
import { utf8Bytes, position } from "./hashing.js";
import { index, keepChance, loss, respond } from "./randomized_response.js";
import { indexBytes, concatenated, packed, vectorBytes } from "./packing.js";
import { expAtMost, logAtLeast, ONE } from "./probability.js";
import { wholeOf, type Arguments, type Randomizer } from "./randomizer.js";
import { flipped } from "./unary.js";

/** Count mean sketch. Apple (2017): a vector of bits from one hash function. */
export function countMeanSketch(settings: Arguments): Randomizer {
  const { hashes, width } = sizes(settings);
  const lie = flipped(settings.epsilon);
  return {
    ...strings,
    payloadBytes: 2 + vectorBytes(width),
    privacyLoss: logAtLeast(fraction(ONE - lie, lie), 2),
    randomize(value, source) {
      const string = utf8Bytes(value);
      const hash = pick(source, hashes);
      const bucket = 1n << BigInt(position(string, hash, width));
      const bits = source.mask(lie, width) ^ bucket;
      return concatenated(packed(BigInt(hash), 2), packed(bits, vectorBytes(width)));
    },
  };
}

/** Hadamard count mean sketch: one entry of the vector's transform. */
export function hadamardSketch(settings: Arguments): Randomizer {
  const { hashes, width } = sizes(settings);
  if (width & (width - 1)) throw new BadParameter(`width ${width} is not a power of two`);
  const keep = keepChance(expAtMost(settings.epsilon), 2);
  return {
    ...strings,
    payloadBytes: indexBytes(2 * hashes * width),
    privacyLoss: loss(keep, 2),
    randomize(value, source) {
      const string = utf8Bytes(value);
      const hash = pick(source, hashes);
      const entry = pick(source, width);
      const minus = isNegative(position(string, hash, width), entry);
      const isMinus = source.chance(keep) ? minus : !minus;
      return index(2 * (hash * width + entry) + Number(isMinus), 2 * hashes * width);
    },
  };
}

/** Local hashing: reports the string's bucket under one of the functions, or another bucket. */
export function localHashing(settings: Arguments): Randomizer {
  const { hashes, width } = sizes(settings);
  const keep = keepChance(expAtMost(settings.epsilon), width);
  return {
    ...strings,
    payloadBytes: indexBytes(hashes * width),
    privacyLoss: loss(keep, width),
    randomize(value, source) {
      const string = utf8Bytes(value);
      const hash = pick(source, hashes);
      const bucket = respond(position(string, hash, width), keep, width, source);
      return index(hash * width + bucket, hashes * width);
    },
  };
}

/** The properties that all mechanisms over strings without a permanent step share. */
export const strings = {
  permanentLoss: Infinity,
  check: (value: unknown) => void utf8Bytes(value),
};

function sizes(settings: Arguments): { hashes: number; width: number } {
  const hashes = wholeOf(settings, "hashes", 1, 1 << 16);
  const width = wholeOf(settings, "width", 2, 1 << 16);
  checkCells(hashes * width, "hashes and width");
  return { hashes, width };
}
