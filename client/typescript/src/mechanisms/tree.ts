/**
 * Discovers strings that no list contains: a prefix tree, hashed level by level; a report is one
 * index.
 *
 * Source and estimator: client/hubbub/mechanisms/tree.py.
 */
import { BadParameter } from "../errors.js";
import { pick } from "./random_bits.js";
import { checkCells } from "./cells.js";
import { digest, utf8Bytes, word } from "./hashing.js";
import { index } from "./randomized_response.js";
import { bitLength, indexBytes, packed } from "./packing.js";
import { responseOver } from "./projective.js";
import { wholeOf, type Arguments, type Randomizer } from "./randomizer.js";
import { strings } from "./sketch.js";
import { spell } from "./string_bits.js";

// 2 ** ROW_BITS beginnings have cells of their own at a level.
const ROW_BITS = 5;
const MAX_BEGINNINGS = 255;

/** `tree`: a job and one of its hash functions, both drawn uniformly. */
export function prefixTree(settings: Arguments): Randomizer {
  const bits = wholeOf(settings, "bits", 2, 128, 64);
  const cells = wholeOf(settings, "cells", 4, 2 ** 20, 2 ** 17);
  const hashes = wholeOf(settings, "hashes", 1, 8, 2);
  const ends = determinedBits(bits, cells);
  const size = ends[ends.length - 1] ?? 0;
  const spellTail = speller(settings.beginnings ?? [], size, ends[0] ?? 0);
  const response = responseOver(settings.epsilon, cells);
  const groups = (ends.length + 1) * hashes;
  const outcomes = groups * response.points;
  checkCells(outcomes, "bits, cells and hashes");

  /** The index of a string with these bits within a group. */
  function place(bitString: bigint, group: number): number {
    const job = Math.floor(group / hashes);
    const [end, begin] = [ends[job], ends[job - 1] ?? 0];
    if (end === undefined) {
      return Number(digest(bigEndian(bitString, size), group)[0] % BigInt(cells));
    }
    const width = BigInt(end - begin);
    const prefix = bitString >> BigInt(size - end);
    const words = digest(bigEndian(prefix >> width, begin), group);
    const row = word(words, 0) % (cells >> Number(width));
    const mask = (1n << width) - 1n;
    return Number((BigInt(row) << width) + ((prefix & mask) ^ (BigInt(word(words, 1)) & mask)));
  }

  return {
    ...strings,
    payloadBytes: indexBytes(outcomes),
    privacyLoss: response.privacyLoss,
    randomize(value, source) {
      utf8Bytes(value);
      const bitString = spellTail(String(value));
      // PRIVACY: the job and its hash function are drawn independently of the value.
      const group = pick(source, groups);
      const cell = response.respond(place(bitString, group), source);
      return index(group * response.points + cell, outcomes);
    },
  };
}

/**
 * A function that encodes a text: the index of its longest known beginning, then the code of the
 * rest.
 */
function speller(
  beginnings: readonly string[],
  size: number,
  firstLevelBits: number,
): (text: string) => bigint {
  const numberBits = beginnings.length ? bitLength(beginnings.length) : 0;
  if (
    beginnings.length > MAX_BEGINNINGS ||
    numberBits >= firstLevelBits ||
    beginnings.includes("")
  ) {
    throw new BadParameter("beginnings are too many, or one is empty");
  }
  return (text) => {
    let [number, longest] = [0, ""];
    for (const [index, beginning] of beginnings.entries()) {
      if (text.startsWith(beginning) && beginning.length > longest.length)
        [number, longest] = [index + 1, beginning];
    }
    const room = size - numberBits;
    return (BigInt(number) << BigInt(room)) | spell(text.slice(longest.length), room);
  };
}

/**
 * For each level, the number of bits of a string that are determined together with the level's own
 * bits.
 */
function determinedBits(bits: number, cells: number): number[] {
  const firstLevelBits = bitLength(cells) - 1;
  if (bits < firstLevelBits)
    throw new BadParameter(`bits ${bits} are below those of ${cells} cells`);
  const step = Math.max(1, firstLevelBits - ROW_BITS);
  const levels = Math.ceil((bits - firstLevelBits) / step);
  return Array.from({ length: levels + 1 }, (_, level) => firstLevelBits + step * level);
}

function bigEndian(number: bigint, bits: number): Uint8Array {
  return packed(number, Math.ceil(bits / 8)).reverse();
}
