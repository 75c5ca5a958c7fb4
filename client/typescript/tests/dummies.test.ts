/** Dummies of devices, by the known answers and on the whole way to a shuffler. */
import assert from "node:assert/strict";
import test from "node:test";

import { openBundle } from "../src/catalog/bundle.js";
import { dummiesOf } from "../src/catalog/dummies.js";
import { metricFrom } from "../src/catalog/metric.js";
import { Client } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import { SystemBits } from "../src/mechanisms/random_bits.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import { FakeShuffler } from "../src/testing.js";
import { fieldsOf } from "../src/transport/protobuf.js";
import { bytesOf, hexOf, knownAnswer } from "./known_answers.js";

interface KnownDummies {
  key: string;
  signed: string;
  crowds: { values: number; each: number; devices: string[][] }[];
}

const { key, signed, crowds } = knownAnswer("wire/dummies") as KnownDummies;
const DEVICES = 60;
const START = 20_000 * 86_400;

function crowd(values: number, each: number) {
  const listed = Array.from({ length: values }, (_, index) => String(index));
  return { mechanism: "grr", central_epsilon: 1, dummies_each: each, values: listed };
}

for (const { values, each, devices } of crowds) {
  test(`devices make the same dummies: ${each} of ${values} values`, () => {
    const dummies = dummiesOf(crowd(values, each));
    const coins = new KeyedBits(bytesOf(key));
    for (const device of devices) assert.deepEqual(dummies?.(coins).map(hexOf), device);
  });
}

test("what dummies name and how many they are is even by the system's coins", () => {
  const uneven = dummiesOf(crowd(4, 2.25));
  const counts = [0, 0, 0, 0];
  let dummyCount = 0;
  for (let device = 0; device < 8000; device += 1) {
    const dummies = uneven?.(new SystemBits()) ?? [];
    dummyCount += dummies.length - 2;
    for (const [value = NaN] of dummies) counts[value] = (counts[value] ?? 0) + 1;
  }
  // 1 - 1e-7 quantiles: of a binomial by 5.5 standard errors, of chi-square with 3 degrees.
  assert.ok(Math.abs(dummyCount - 2000) < 5.5 * Math.sqrt(1500), String(dummyCount));
  const expected = (16_000 + dummyCount) / 4;
  const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  assert.ok(chiSquare < 35.41, counts.join());
});

test("a device sends its dummies as reports, in any order, and keeps of them that they are none", async () => {
  const bundle = await openBundle(new TextEncoder().encode(signed), null);
  let firstCount = 0;
  for (let device = 0; device < DEVICES; device += 1) {
    const bodies: Uint8Array[] = [];
    const shuffler = Object.assign(new FakeShuffler(), {
      last: (body: Uint8Array) => void bodies.push(body),
    });
    const client = await Client.over(bundle, new MemoryStorage(), shuffler, {
      ...{ holdSeconds: null, now: () => START },
    });
    assert.equal(client.report("theme", "dark"), "queued");
    await client.settled();
    client.leave();
    assert.equal(await client.flush(), true);
    const reportCount = shuffler.reports;
    assert.ok(reportCount === 3 || reportCount === 4, String(reportCount));
    const leaving = [...fieldsOf(bodies[0] ?? new Uint8Array())].map(([, field]) =>
      hexOf(field as Uint8Array),
    );
    assert.equal(leaving.length, reportCount);
    assert.equal(new Set(leaving.map((payload) => payload.length)).size, 1);
    const { payloads, metrics } = await client.ledger();
    assert.equal(payloads.filter((payload) => payload.payload.length).length, 1);
    assert.ok(Math.abs((metrics[0]?.spent ?? 0) - 1) < 1e-9);
    firstCount += Number(leaving[0] === hexOf(firstOf(shuffler)));
  }
  assert.ok(firstCount < DEVICES, "what leaves first is not always the same");
});

/** The report that was submitted first, as its field. */
function firstOf(shuffler: FakeShuffler): Uint8Array {
  const [body = new Uint8Array()] = shuffler.requests;
  const [field] = fieldsOf(body);
  return field?.[1] as Uint8Array;
}

test("none are made in development, and a crowd of no list has none", async () => {
  const entry = {
    ...{ description: "?", owner: "?", expires: "2099-12-31", epoch: "day", min_batch: 10 },
    ...{ version: 1, epsilon: 1, parameters: {}, reports_per_epoch: 1, lifetime_epsilon: 9 },
    ...{ ...crowd(3, 0.5), crowd: 10 },
  };
  assert.ok((await metricFrom("theme", entry, false)).dummies);
  assert.equal((await metricFrom("theme", entry, true)).dummies, null);
  for (const wrongFields of [
    { dummies_each: -1 },
    { dummies_each: 1e6 },
    { mechanism: "unary.oue" },
  ]) {
    await assert.rejects(metricFrom("theme", { ...entry, ...wrongFields }, false), TypeError);
  }
});
