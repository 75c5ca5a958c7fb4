/**
 * The system's coins, by chi-square against exact probabilities.
 *
 * Each test would fail by chance in less than one of three million runs: it compares with at most
 * three bounds, which are the quantiles of chi-square, rounded up.
 */
import assert from "node:assert/strict";
import test from "node:test";

import { product } from "../src/mechanisms/portable_floats.js";
import { book } from "../src/mechanisms/direction_pool.js";
import { pick, SystemBits, type BitSource } from "../src/mechanisms/random_bits.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import { MECHANISMS } from "../src/vectors.js";

const DRAWS = 10_000;
// 1 - 1e-7 quantiles of chi-square by degrees of freedom.
const BOUNDS = new Map([
  [1, 28.38],
  [4, 38.24],
  [5, 40.87],
  [9, 50.18],
]);

function chiSquare(counts: readonly number[], chances: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.reduce((sum, count, index) => {
    const expected = total * (chances[index] ?? 0);
    return sum + (count - expected) ** 2 / expected;
  }, 0);
}

function fits(counts: readonly number[], chances: readonly number[]): void {
  const bound = BOUNDS.get(counts.length - 1);
  assert.ok(bound);
  assert.ok(chiSquare(counts, chances) < bound, counts.join(" "));
}

const sources: [string, BitSource][] = [
  ["the system's", new SystemBits()],
  ["a key's", new KeyedBits(new Uint8Array(32).fill(7))],
];
for (const [sourceName, source] of sources) {
  test(`${sourceName} coins come out as often as they should`, () => {
    const heads = [0, 0];
    const faces = [0, 0, 0, 0, 0];
    const oneCounts = Array.from({ length: 10 }, () => 0);
    const third = (1n << 64n) / 3n;
    for (let draw = 0; draw < DRAWS; draw += 1) {
      add(heads, Number(source.chance(third)));
      add(faces, pick(source, faces.length));
      for (const [bit] of oneCounts.entries()) {
        if (draw % 10 === 0)
          add(oneCounts, (source.mask(third, 10) >> BigInt(bit)) & 1n ? bit : -1);
      }
    }
    fits(heads, [2 / 3, 1 / 3]);
    fits(faces, [0.2, 0.2, 0.2, 0.2, 0.2]);
    fits(
      oneCounts,
      oneCounts.map(() => 1 / oneCounts.length),
    );
  });
}

test("payloads of grr come as often as its probabilities say", () => {
  const grr = MECHANISMS.get("grr");
  assert.ok(grr);
  const categories = 6;
  const randomizer = grr.build({ epsilon: 1, categories, sizes: [], parameters: {} });
  const counts = Array.from({ length: categories }, () => 0);
  const coins = new SystemBits();
  for (let draw = 0; draw < DRAWS; draw += 1) add(counts, randomizer.randomize(2, coins)[0] ?? -1);
  const e = Math.exp(1);
  const lie = 1 / (e + categories - 1);
  fits(
    counts,
    counts.map((_, index) => (index === 2 ? e * lie : lie)),
  );
});

test("payloads of subset are every set equally often, with and without the value", () => {
  const subset = MECHANISMS.get("subset");
  assert.ok(subset);
  const randomizer = subset.build({ epsilon: 0.5, categories: 5, sizes: [], parameters: {} });
  const counts = new Map<number, number>();
  const coins = new SystemBits();
  for (let draw = 0; draw < DRAWS; draw += 1) {
    const payload = randomizer.randomize(0, coins)[0] ?? -1;
    counts.set(payload, (counts.get(payload) ?? 0) + 1);
  }
  const sets = [...counts.keys()].sort((first, second) => first - second);
  assert.equal(sets.length, 10); // two of five
  const odds = Math.exp(0.5);
  const truth = (2 * odds) / (2 * odds + 3);
  fits(
    sets.map((set) => counts.get(set) ?? 0),
    sets.map((set) => (set & 1 ? truth / 4 : (1 - truth) / 6)),
  );
});

test("words of a pool come as often as near and far ones should, of a vector half as long", () => {
  const [dimensions, words, books, nearCount] = [2, 5, 2, 2];
  const codes = MECHANISMS.get("vector.codes");
  assert.ok(codes);
  const parameters = { dimensions, words, books, max_length: 2 };
  const randomizer = codes.build({ epsilon: 1, categories: 2, sizes: [], parameters });
  const direction = [0.6, -0.8];
  const counts = Array.from({ length: words * books }, () => 0);
  const coins = new SystemBits();
  for (let draw = 0; draw < DRAWS; draw += 1) {
    add(counts, randomizer.randomize(direction, coins)[0] ?? -1);
  }
  // Of length 1 where 2 is the most: the opposite in one of four.
  const e = Math.exp(1);
  const lie = 1 / (nearCount * e + words - nearCount);
  const chances = [0, 1].flatMap((number) => {
    const jsBook = book("0", number, words, dimensions);
    const along = Array.from({ length: words }, (_, word) => {
      return product(direction, jsBook.subarray(dimensions * word));
    });
    const chance = (sign: number, index: number) => {
      const ranked = along.map((number) => sign * number).sort((first, second) => second - first);
      const smallestNear = ranked[nearCount - 1] ?? Infinity;
      return sign * (along[index] ?? 0) >= smallestNear ? e * lie : lie;
    };
    return along.map((_, index) => (0.75 * chance(1, index) + 0.25 * chance(-1, index)) / books);
  });
  fits(counts, chances);
});

function add(counts: number[], index: number): void {
  if (index >= 0) counts[index] = (counts[index] ?? 0) + 1;
}
