/**
 * Spelling: a string as bits, so that what strings begin with alike, their bits begin with alike.
 *
 * A few bits say which alphabet follows, then each letter has its code, then the end has one. As
 * client/hubbub/mechanisms/spelling.py, which also reads it. All of this is on the wire: it never
 * changes.
 */
import { AFTER_IN_HOSTS, AFTER_IN_WORDS, HOSTS, WORDS } from "./letters.js";
import { bitLength } from "./packing.js";

/** Some bits as a number, and how many they are. */
type Code = readonly [bits: bigint, size: number];

/** The letters of one script. A letter's code may depend on the one before; "" is the end. */
interface Alphabet {
  /** No letter has fewer bits, but for the end. */
  readonly least: number;
  code(before: string, letter: string): Code;
}

interface Named {
  readonly name: Code;
  readonly alphabet: Alphabet;
}

const ESCAPED_BITS = 21;
// Of letters of so many bits, one more says whether there is one.
const MARKED_BITS = 12;
const LAST_CHARACTER = String.fromCodePoint(0x10ffff);
// What words and hosts have beside their own letters, each in so many bits more.
const RARE_BITS = 6;
const RARE_IN_WORDS = "0123456789.,!?:;_/()@#&+=%äöüßéèêàçñáíóúãõâîôûëïåøæœęłışğčž";
const RARE_IN_HOSTS = "_/:?=&%+~@#ABCDEFGHIJKLMNOPQRSTUVWXYZ";
// First and last of letters that follow each other, per script; docs as in Python.
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

let names: readonly Named[] | undefined;

/** As much of a text as `size` bits tell, as a number; what is left after its end is 0. */
export function spell(text: string, size: number): bigint {
  const letters = Array.from(text);
  const { name, alphabet } = fullest(letters, size);
  let [bits, bitCount] = name;
  if (bitCount >= size) return bits >> BigInt(bitCount - size);
  for (const [index, letter] of [...letters, ""].entries()) {
    const previous = letters[index - 1] ?? "";
    const [code, codeSize] = alphabet.code(previous, letter);
    if (bitCount + codeSize > size) {
      return (bits << BigInt(size - bitCount)) | codeBeginning(alphabet, previous, size - bitCount);
    }
    [bits, bitCount] = [(bits << BigInt(codeSize)) | code, bitCount + codeSize];
  }
  return bits << BigInt(size - bitCount);
}

/** The bits that are left where a letter does not fit: how the longest code begins. */
function codeBeginning(alphabet: Alphabet, previous: string, room: number): bigint {
  const [code, codeSize] = alphabet.code(previous, LAST_CHARACTER);
  return code >> BigInt(codeSize - room);
}

/** The alphabet that tells most letters, the end one of them, in the fewest bits; the first. */
function fullest(letters: readonly string[], size: number): Named {
  const candidates = alphabets();
  let [best, maxLetters, minBits] = [candidates[0], -1, size];
  for (const candidate of candidates) {
    const { name, alphabet } = candidate;
    let [letterCount, bitCount] = [0, name[1]];
    for (const [index, letter] of [...letters, ""].entries()) {
      const [, codeSize] = alphabet.code(letters[index - 1] ?? "", letter);
      if (bitCount + codeSize > size) {
        // Where not even the first letter fits, the alphabet alone is told.
        bitCount += letterCount ? 0 : codeSize;
        break;
      }
      [letterCount, bitCount] = [letterCount + 1, bitCount + codeSize];
    }
    if (letterCount > maxLetters || (letterCount === maxLetters && bitCount < minBits)) {
      [best, maxLetters, minBits] = [candidate, letterCount, bitCount];
    }
  }
  if (!best) throw new RangeError("there is no alphabet");
  return best;
}

/** Every alphabet, and by which bits it is named. Made at the first use. */
function alphabets(): readonly Named[] {
  names ??= [
    { name: [0b0n, 1], alphabet: paired(WORDS, RARE_IN_WORDS, AFTER_IN_WORDS) },
    { name: [0b10n, 2], alphabet: paired(HOSTS, RARE_IN_HOSTS, AFTER_IN_HOSTS) },
    ...SPANS.map((spans, place): Named => ({
      name: [0b110000n + BigInt(place), 6],
      alphabet: flat(spans),
    })),
  ];
  return names;
}

/** Letters whose codes depend on the one before; and rare ones, which share a code. */
function paired(letters: string, rare: string, lengths: readonly string[]): Alphabet {
  const places = new Map(["", ...Array.from(letters)].map((letter, place) => [letter, place]));
  const rares = Array.from(rare);
  const codes = lengths.map((line) =>
    canonical(Array.from(line).map((digit) => parseInt(digit, 16))),
  );
  return {
    least: 1,
    code(previous, letter) {
      const row = codes[places.get(previous) ?? places.size] ?? [];
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
 * Letters that all have codes of one length.
 *
 * Of few letters, 0 is the end; of many that would be long, and a bit before each says that there is
 * one. 1 is any letter that is not among them.
 */
function flat(spans: readonly string[]): Alphabet {
  const ends = spans.map((span) => {
    const letters = Array.from(span);
    return [point(letters[0] ?? ""), point(letters[letters.length - 1] ?? "")] as const;
  });
  const codeCount = ends.reduce((sum, [first, last]) => sum + Number(last - first) + 1, 2);
  const plain = bitLength(codeCount - 1);
  const hasMark = plain >= MARKED_BITS;
  const size = plain + Number(hasMark);
  const mark = hasMark ? 1n << BigInt(plain) : 0n;
  return {
    least: size,
    code(_before, letter) {
      if (!letter) return [0n, hasMark ? 1 : size];
      let place = 2n;
      for (const [first, last] of ends) {
        if (first <= point(letter) && point(letter) <= last) {
          return [mark | (place + point(letter) - first), size];
        }
        place += last - first + 1n;
      }
      return [((mark | 1n) << BigInt(ESCAPED_BITS)) | point(letter), size + ESCAPED_BITS];
    },
  };
}

/** The prefix code of these lengths: shorter ones first, and of one length in their order. */
function canonical(lengths: readonly number[]): Code[] {
  const codes: Code[] = [];
  let [code, size] = [0n, 0];
  const order = lengths.map((length, place) => [length, place] as const);
  order.sort(
    ([first, firstPlace], [second, secondPlace]) => first - second || firstPlace - secondPlace,
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
