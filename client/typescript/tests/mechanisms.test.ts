import assert from "node:assert/strict";
import test from "node:test";

import { BadParameter, ValueOutOfDomain } from "../src/errors.js";
import { plainNumber } from "../src/catalog/ranges.js";
import { SystemBits } from "../src/mechanisms/random_bits.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import { exact, fraction, toNumber } from "../src/mechanisms/fraction.js";
import { atLeast, atMost, expAtMost } from "../src/mechanisms/probability.js";
import { gradient, place, toJudge, type LearnedExample } from "../src/mechanisms/gradient.js";
import { indexIn, type Coded, type Randomizer } from "../src/mechanisms/randomizer.js";
import { book, steps, topSums } from "../src/mechanisms/direction_pool.js";
import {
  survivalFunction,
  density,
  expNeg,
  length,
  sum,
} from "../src/mechanisms/portable_floats.js";
import { MECHANISMS } from "../src/vectors.js";
import { bytesOf, hexOf, knownAnswer, knownMechanisms } from "./known_answers.js";

interface Answers {
  version: number;
  parameters: Record<string, number> & { sizes?: number[]; seed?: string };
  key: string;
  privacy_loss: number;
  payloads: { value: Coded; payload: string }[];
}

/** A person's columns and label, the state, and what is told of them. */
interface Person extends LearnedExample {
  place: number[];
  gradient: number[];
  to_judge: [number, number];
}

/** Known answers of what decides over payloads of vectors. */
interface Directions {
  steps: number[];
  book: number[][];
  parameters: Record<string, number> & { seed: string };
  key: string;
  payloads: [value: number[], payload: string][];
  near: { epsilon: number; dimensions: number; words: number; near: number; loss: number }[];
  sums: { numbers: number[]; sum: number }[];
  floats: { x: number; falling: number; density: number; above: number; length: number }[];
  gradients: Person[];
  top: { words: number; sums: number[]; squares: number[] };
}

function built(name: string, settings: Answers["parameters"]): Randomizer {
  const { epsilon = NaN, categories = 2, sizes = [], seed, ...parameters } = settings;
  const mechanism = MECHANISMS.get(name);
  assert.ok(mechanism);
  const seeded = seed === undefined ? {} : { seed };
  return mechanism.build({ epsilon, categories, sizes, parameters, ...seeded });
}

const EVERY = [...MECHANISMS].map(([name, { version }]) => ({ name, version, file: name }));
const OTHER_ANSWERS = [
  { name: "mean.table", version: 1, file: "more/mean.table.fine" },
  { name: "mean.table", version: 1, file: "more/mean.table.small" },
  { name: "pairs", version: 1, file: "more/pairs.three" },
  { name: "pairs", version: 1, file: "more/pairs.all" },
  { name: "vector.codes", version: 1, file: "more/vector.codes.seed" },
];
for (const { name, version, file } of [...EVERY, ...OTHER_ANSWERS]) {
  test(`the same coins give the same payloads: ${file}`, () => {
    const answers = knownAnswer(file) as Answers;
    const randomizer = built(name, answers.parameters);
    const coins = new KeyedBits(bytesOf(answers.key));
    assert.equal(version, answers.version);
    assert.ok(Math.abs(randomizer.privacyLoss / answers.privacy_loss - 1) < 1e-12);
    assert.ok(randomizer.permanentLoss >= randomizer.privacyLoss);
    assert.ok(answers.payloads.length);
    for (const { value, payload } of answers.payloads) {
      const randomized = randomizer.randomize(value, coins);
      assert.equal(hexOf(randomized), payload);
      assert.equal(randomized.length, randomizer.payloadBytes);
    }
  });
}

test("every mechanism that devices know has known answers, and no other has", () => {
  assert.deepEqual([...MECHANISMS.keys()].sort(), knownMechanisms().sort());
});

test("the words of a pool are Python's, and so is which of them are near", () => {
  const answers = knownAnswer("more/directions") as Directions;
  assert.deepEqual([...steps()], answers.steps);
  assert.deepEqual([...book("a seed", 7, 4, 5)], answers.book.flat());
  const { parameters, key } = answers;
  const randomizer = built("vector.codes", parameters);
  const coins = new KeyedBits(bytesOf(key));
  for (const [value, payload] of answers.payloads) {
    assert.equal(hexOf(randomizer.randomize(value, coins)), payload);
  }
  for (const { epsilon, dimensions, words, near, loss } of answers.near) {
    const codes = built("vector.codes", { epsilon, dimensions, words, books: 1 });
    assert.ok(Math.abs(codes.privacyLoss / loss - 1) < 1e-12, String(near));
  }
});

test("what people tell models of themselves is Python's, to the last digit", () => {
  for (const person of (knownAnswer("more/directions") as Directions).gradients) {
    assert.deepEqual(place(person.columns), person.place);
    assert.deepEqual(gradient(person), person.gradient);
    assert.deepEqual(toJudge(person), person.to_judge);
  }
});

test("sums are rounded once, and lengths and chances are the last digit's", () => {
  const { sums, floats, top } = knownAnswer("more/directions") as Directions;
  for (const { numbers, sum: expectedSum } of sums) assert.equal(sum(numbers), expectedSum);
  for (const {
    x,
    falling: fell,
    density: dense,
    above: chance,
    length: expectedLength,
  } of floats) {
    assert.equal(expNeg(x), fell);
    assert.equal(density(x), dense);
    assert.equal(survivalFunction(x), chance);
    assert.equal(length([x, 1 / 3, -x]), expectedLength);
  }
  const { sums: of, squares } = topSums(top.words);
  assert.deepEqual([...of], top.sums);
  assert.deepEqual([...squares], top.squares);
});

test("exp is the same in every engine, and as near as a double can be", () => {
  for (let x = 2 ** -10; x <= 16; x *= 1.37) {
    const mine = toNumber(expAtMost(x));
    const theirs = Math.exp(x * (1 - 2 ** -40));
    assert.ok(Math.abs(mine / theirs - 1) <= 2 ** -52);
  }
  // Correctly rounded, as GNU's library has them.
  assert.equal(toNumber(expAtMost(1)), 2.718281828456573);
  assert.equal(toNumber(expAtMost(16)), 8886110.520378564);
});

test("fractions are those of doubles, to the last digit", () => {
  for (const number of [0, 1 / 3, -0.1, 2 ** 60 + 2 ** 10, 1e-300, 1e300, Number.MAX_VALUE]) {
    assert.equal(toNumber(exact(number)), number);
  }
  assert.equal(toNumber(fraction(1n, 3n)), 1 / 3);
  assert.equal(atMost(fraction(1n, 3n)) + 1n, atLeast(fraction(1n, 3n)));
  assert.throws(() => atMost(fraction(4n, 3n)), BadParameter);
});

test("the truth is kept as often as epsilon allows, and not more often", () => {
  for (const epsilon of [2 ** -10, 0.1, 1, 3, 16]) {
    for (const categories of [2, 5, 257, 2 ** 20]) {
      const { privacyLoss } = built("grr", { epsilon, categories });
      assert.ok(privacyLoss <= epsilon);
      assert.ok(privacyLoss > epsilon * (1 - 1e-9));
    }
  }
});

test("a number out of range is refused", () => {
  for (const [epsilon, categories] of [
    [0, 2],
    [17, 2],
    [NaN, 2],
    [1, 1],
    [1, 2.5],
    [1, 2 ** 21],
  ] as const) {
    assert.throws(() => built("grr", { epsilon, categories }), BadParameter);
  }
  assert.throws(() => built("rr", { epsilon: 1, categories: 3 }), BadParameter);
  assert.throws(() => built("hcms", { epsilon: 1, hashes: 3, width: 12 }), BadParameter);
  for (const [low, high] of [
    [0, 0],
    [0, 1.1e100],
    [-1.1e100, 0],
    [0, 1e-101],
  ] as const) {
    assert.throws(() => built("wave", { epsilon: 1, low, high, buckets: 4 }), BadParameter);
  }
  built("wave", { epsilon: 1, low: -1e100, high: 1e100, buckets: 4 });
  assert.throws(() => built("cms", { epsilon: 1, hashes: 3 }), BadParameter);
  for (const wrongParameters of [
    { categories: 3, most: 4 },
    { categories: 4097, most: 1 },
    { most: 0 },
  ]) {
    assert.throws(() => built("privset", { epsilon: 1, ...wrongParameters }), BadParameter);
  }
  assert.throws(() => built("long.grr", { epsilon: 1, permanent_epsilon: 1 }), BadParameter);
  for (const wrongParameters of [
    { dimensions: 1 },
    { dimensions: 1025 },
    { words: 1 },
    { words: 1024, books: 65536 },
    { max_length: 0 },
    { max_length: 1e13 },
    { max_length: NaN },
  ]) {
    const settings = { epsilon: 1, dimensions: 4, words: 4, books: 4, ...wrongParameters };
    assert.throws(() => built("vector.codes", settings), BadParameter);
  }
});

test("a value out of range is refused, and never shown", () => {
  const wrongValues: [string, unknown[]][] = [
    ["grr", [-1, 300, 0.5, NaN, "0", null]],
    ["rappor", [0, null, "\ud800", "x".repeat(4097)]],
    ["wave", [-5.1, 21, NaN, "7", Infinity]],
    ["pairs", [-1, 24]],
    ["privset", [-1, 2 ** 11, 1n << 11n, 0.5, "1", null]],
    [
      "vector.codes",
      [[1, 0], "abc", null, 7777, [2, 2, 0], [NaN, 0, 1], [1, 0, "x"], [1e308, 1e308, 1]],
    ],
  ];
  for (const [name, values] of wrongValues) {
    const randomizer = built(name, (knownAnswer(name) as Answers).parameters);
    for (const value of values) {
      assert.throws(() => {
        randomizer.check(value);
      }, ValueOutOfDomain);
      assert.throws(() => randomizer.randomize(value as Coded, new SystemBits()), ValueOutOfDomain);
    }
  }
  assert.throws(
    () => indexIn(3, "secret"),
    (error: Error) => !error.message.includes("secret"),
  );
});

test("a bigint is the number that it is, and what is none stays refused", () => {
  assert.equal(plainNumber("count", "", 3n), 3);
  assert.equal(plainNumber("size", "MiB", 2n), 2);
  for (const value of ["3", null, 10n ** 400n, { valueOf: () => 3 }]) {
    assert.throws(() => plainNumber("count", "", value), ValueOutOfDomain);
  }
  assert.equal(plainNumber("size", "MiB", "0.5 GiB"), 512);
  assert.throws(() => plainNumber("size", "MiB", "0.5 TiB"), {
    message: 'value is not a number, nor a text such as "1.5 MiB"; the largest is 1.8e308',
  });
});
