import assert from "node:assert/strict";
import test from "node:test";

import {
  BadParameter,
  GeneralizedRandomizedResponse,
  MECHANISMS,
  randomizedResponse,
  SystemBits,
  ValueOutOfDomain,
} from "../src/index.js";
import { bytesOf, hexOf, known, KeyedBits } from "./known.js";

interface Answers {
  version: number;
  parameters: { epsilon: number; categories?: number };
  key: string;
  payloads: { value: number; payload: string }[];
}

for (const [name, mechanism] of MECHANISMS) {
  test(`the same coins give the same payloads: ${name}`, () => {
    const { version, parameters, key, payloads } = known(name) as Answers;
    const randomizer = mechanism.build(parameters.epsilon, parameters.categories ?? 2);
    const coins = new KeyedBits(bytesOf(key));
    assert.equal(mechanism.version, version);
    assert.ok(payloads.length);
    for (const { value, payload } of payloads) {
      assert.equal(hexOf(randomizer.randomize(value, coins)), payload);
    }
  });
}

test("more than yes and no is no question of rr", () => {
  assert.throws(() => randomizedResponse(1, 3), BadParameter);
});

test("the truth is kept as often as epsilon allows, and not more often", () => {
  for (const epsilon of [2 ** -10, 0.1, 1, 3, 16]) {
    for (const categories of [2, 5, 257, 2 ** 20]) {
      const { keep } = new GeneralizedRandomizedResponse(epsilon, categories);
      const truth = Number(keep) / 2 ** 64;
      const ratio = (truth * (categories - 1)) / (Number(2n ** 64n - keep) / 2 ** 64);
      assert.ok(Math.log(ratio) <= epsilon);
      assert.ok(Math.log(ratio) > epsilon * (1 - 1e-9));
    }
  }
});

test("the system's coins come out as often as they should", () => {
  const [coins, times, quarter] = [new SystemBits(), 40_000, 1n << 62n];
  const counts = { heads: 0, faces: [0, 0, 0, 0, 0] };
  for (let time = 0; time < times; time += 1) {
    counts.heads += Number(coins.chance(quarter));
    const face = coins.below(counts.faces.length);
    counts.faces[face] = (counts.faces[face] ?? 0) + 1;
  }
  // Six standard deviations of a binomial: six counts, a false alarm in less than 1e-7.
  const near = (count: number, chance: number): boolean =>
    Math.abs(count - times * chance) <= 6 * Math.sqrt(times * chance * (1 - chance));
  assert.ok(near(counts.heads, 1 / 4));
  assert.ok(counts.faces.every((count) => near(count, 1 / 5)));
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
    assert.throws(() => new GeneralizedRandomizedResponse(epsilon, categories), BadParameter);
  }
});

test("a value out of range is refused", () => {
  const randomizer = new GeneralizedRandomizedResponse(1, 3);
  for (const value of [-1, 3, 0.5, NaN]) {
    assert.throws(() => randomizer.randomize(value, new SystemBits()), ValueOutOfDomain);
  }
});
