/**
 * Encodes a string as bits, so that strings with a common beginning have bits with a common
 * beginning.
 *
 * The first bits select an alphabet, then each letter has a code, and the end has one. As
 * client/hubbub/mechanisms/string_bits.py, which also decodes. All of this defines the wire format and
 * never changes.
 */
import { HOST_CODE_LENGTHS, HOSTS, WORD_CODE_LENGTHS, WORDS } from "./letter_codes.js";
import { bitLength } from "./packing.js";

/** Bits as a number, and how many bits there are. */
type Code = readonly [bits: bigint, size: number];

/**
 * The letters of one script. The code of a letter may depend on the previous letter; "" is the end.
 */
interface Alphabet {
  /** The smallest number of bits of a letter; the end may have fewer. */
  readonly minBits: number;
  code(before: string, letter: string): Code;
}

interface NamedAlphabet {
  readonly name: Code;
  readonly alphabet: Alphabet;
}

const ESCAPED_BITS = 21;
// Before each letter of at least MARKED_BITS bits, one more bit indicates that a letter follows.
const MARKED_BITS = 12;
const LAST_CHARACTER = String.fromCodePoint(0x10ffff);
// Rare letters of words and hosts, beside the common ones. Each takes RARE_BITS more bits.
const RARE_BITS = 6;
const RARE_IN_WORDS = "0123456789.,!?:;_/()@#&+=%äöüßéèêàçñáíóúãõâîôûëïåøæœęłışğčž";
const RARE_IN_HOSTS = "_/:?=&%+~@#ABCDEFGHIJKLMNOPQRSTUVWXYZ";
// The first and last letters of consecutive ranges, for each script; documented in the Python file.
const SPANS: readonly string[][] = [
  [" ~"],
  ["09", "af", "-"],
  ["09", "+:", " ", "%"],
  [" ~", "\u00a0\u017f"],
  ["\u0430\u045f", " ", "-"],
  ["\u0400\u045f", "09", " ", "-", ".", ",", "!", "?"],
  ["\u03ac\u03ce", " ", "-", "."],
  ["\u05d0\u05ea", " ", "-", "."],
  ["\u0621\u064a", "\u067e", "\u0686", "\u0698", "\u06a9", "\u06af", "\u06cc", " ", "."],
  ["\u0901\u0970", " ", "-", "."],
  ["\u0e01\u0e5b", " ", "09", "."],
  ["\u3041\u3096", "\u30a1\u30fe", "\u3001\u3002", " "],
  ["\u3001\u30fe", "\u4e00\u9fff", "\uff01\uff5e", " ~"],
  ["\uac00\ud7a3", " ~"],
  ["\u{1f000}\u{1faff}", "\u2600\u27bf", "\ufe0f", "\u200d", "\u2b50", " ~"],
  [" \u1fff"],
];

let names: readonly NamedAlphabet[] | undefined;

/** The first `size` bits of the code of a text, as a number; the bits after its end are 0. */
export function spell(text: string, size: number): bigint {
  const letters = Array.from(text);
  const { name, alphabet } = fullest(letters, size);
  let [bits, bitCount] = name;
  if (bitCount >= size) return bits >> BigInt(bitCount - size);
  for (const [index, letter] of [...letters, ""].entries()) {
    const previousLetter = letters[index - 1] ?? "";
    const [code, codeSize] = alphabet.code(previousLetter, letter);
    if (bitCount + codeSize > size) {
      return (
        (bits << BigInt(size - bitCount)) | codeBeginning(alphabet, previousLetter, size - bitCount)
      );
    }
    [bits, bitCount] = [(bits << BigInt(codeSize)) | code, bitCount + codeSize];
  }
  return bits << BigInt(size - bitCount);
}

/** The bits that remain where a letter does not fit: the beginning of the longest code. */
function codeBeginning(alphabet: Alphabet, previousLetter: string, room: number): bigint {
  const [code, codeSize] = alphabet.code(previousLetter, LAST_CHARACTER);
  return code >> BigInt(codeSize - room);
}

/**
 * The alphabet that encodes the most letters, including the end, in the fewest bits; a tie goes to
 * the first.
 */
function fullest(letters: readonly string[], size: number): NamedAlphabet {
  const candidates = alphabets();
  let [bestAlphabet, maxLetters, minBits] = [candidates[0], -1, size];
  for (const candidate of candidates) {
    const { name, alphabet } = candidate;
    let [letterCount, bitCount] = [0, name[1]];
    for (const [index, letter] of [...letters, ""].entries()) {
      const [, codeSize] = alphabet.code(letters[index - 1] ?? "", letter);
      if (bitCount + codeSize > size) {
        // If not even the first letter fits, only the alphabet is encoded.
        bitCount += letterCount ? 0 : codeSize;
        break;
      }
      [letterCount, bitCount] = [letterCount + 1, bitCount + codeSize];
    }
    if (letterCount > maxLetters || (letterCount === maxLetters && bitCount < minBits)) {
      [bestAlphabet, maxLetters, minBits] = [candidate, letterCount, bitCount];
    }
  }
  if (!bestAlphabet) throw new RangeError("there is no alphabet");
  return bestAlphabet;
}

/** All alphabets, with the bits that select each; built at the first use. */
function alphabets(): readonly NamedAlphabet[] {
  names ??= [
    { name: [0b0n, 1], alphabet: paired(WORDS, RARE_IN_WORDS, WORD_CODE_LENGTHS) },
    { name: [0b10n, 2], alphabet: paired(HOSTS, RARE_IN_HOSTS, HOST_CODE_LENGTHS) },
    ...SPANS.map((spans, place): NamedAlphabet => ({
      name: [0b110000n + BigInt(place), 6],
      alphabet: flat(spans),
    })),
  ];
  return names;
}

/**
 * An alphabet whose codes depend on the previous letter; rare letters share one code as a prefix.
 */
function paired(letters: string, rare: string, lengths: readonly string[]): Alphabet {
  const places = new Map(["", ...Array.from(letters)].map((letter, place) => [letter, place]));
  const rares = Array.from(rare);
  const codes = lengths.map((line) =>
    canonical(Array.from(line).map((digit) => parseInt(digit, 16))),
  );
  return {
    minBits: 1,
    code(previousLetter, letter) {
      const row = codes[places.get(previousLetter) ?? places.size] ?? [];
      const place = places.get(letter);
      const [bits, size] = row[place ?? row.length - 1] ?? [0n, 0];
      if (place !== undefined) return [bits, size];
      const rareNumber = rares.indexOf(letter) + 1;
      const rareCode = (bits << BigInt(RARE_BITS)) | BigInt(rareNumber);
      if (rareNumber) return [rareCode, size + RARE_BITS];
      const escaped = (rareCode << BigInt(ESCAPED_BITS)) | point(letter);
      return [escaped, size + RARE_BITS + ESCAPED_BITS];
    },
  };
}

/**
 * An alphabet in which all letters have codes of the same length.
 *
 * In small alphabets the code 0 is the end. In large alphabets that would be long, so a bit before
 * each letter indicates that a letter follows. The code 1 is any letter outside the alphabet.
 */
function flat(spans: readonly string[]): Alphabet {
  const ends = spans.map((span) => {
    const letters = Array.from(span);
    return [point(letters[0] ?? ""), point(letters[letters.length - 1] ?? "")] as const;
  });
  const codeCount = ends.reduce(
    (sum, [firstPoint, lastPoint]) => sum + Number(lastPoint - firstPoint) + 1,
    2,
  );
  const codeBits = bitLength(codeCount - 1);
  const hasMark = codeBits >= MARKED_BITS;
  const size = codeBits + Number(hasMark);
  const mark = hasMark ? 1n << BigInt(codeBits) : 0n;
  return {
    minBits: size,
    code(_before, letter) {
      if (!letter) return [0n, hasMark ? 1 : size];
      let place = 2n;
      for (const [firstPoint, lastPoint] of ends) {
        if (firstPoint <= point(letter) && point(letter) <= lastPoint) {
          return [mark | (place + point(letter) - firstPoint), size];
        }
        place += lastPoint - firstPoint + 1n;
      }
      return [((mark | 1n) << BigInt(ESCAPED_BITS)) | point(letter), size + ESCAPED_BITS];
    },
  };
}

/** The canonical prefix code of these lengths: shorter codes first, equal lengths in order. */
function canonical(lengths: readonly number[]): Code[] {
  const codes: Code[] = [];
  let [code, size] = [0n, 0];
  const order = lengths.map((length, place) => [length, place] as const);
  order.sort(
    ([firstLength, firstPlace], [secondLength, secondPlace]) =>
      firstLength - secondLength || firstPlace - secondPlace,
  );
  for (const [length, place] of order) {
    code <<= BigInt(length - size);
    size = length;
    codes[place] = [code, size];
    code += 1n;
  }
  return codes;
}

function point(letter: string): bigint {
  return BigInt(letter.codePointAt(0) ?? 0);
}
