/** Local mode: a person sees their own counts; nothing is drawn, spent or sent. */
import assert from "node:assert/strict";
import test from "node:test";

import { openBundle } from "../src/catalog/bundle.js";
import type { Value } from "../src/catalog/values.js";
import { Client, type Options } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import { meant } from "../src/client/value_hints.js";
import { FakeShuffler } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";
import { keptIn, type Life } from "./device_life.js";

const life = knownAnswer("wire/ledger") as Life;

async function counting(
  storage: MemoryStorage,
  shuffler = new FakeShuffler(),
  options: Options = {},
  { signed, start } = life,
) {
  const bundle = await openBundle(new TextEncoder().encode(signed), null);
  const settings = { holdSeconds: null, now: () => start, local: true, ...options };
  return Client.over(bundle, storage, shuffler, settings);
}

test("a person sees their counts, over pages, and nothing is drawn or sent", async () => {
  const [storage, shuffler] = [new MemoryStorage(), new FakeShuffler()];
  const firstClient = await counting(storage, shuffler);
  const outcomes = ["dark", "light", "dark", "drak"].map((value) =>
    firstClient.report("theme", value),
  );
  assert.deepEqual(new Set(outcomes), new Set(["counted"]));
  assert.equal(await firstClient.close(), true);
  const client = await counting(storage, shuffler);
  const values: [string, Value][] = [
    ...[0, 7.5, 24, 99].map((hours): [string, Value] => ["hours", hours]),
    ...([
      ["startup", 7],
      ["domain", "example.org"],
    ] as [string, Value][]),
    ["domain", "a\u202eb"],
    ["both", { theme: "dark", age: 41, on: true }],
  ];
  for (const [metric, value] of values) assert.equal(client.report(metric, value), "counted");
  assert.equal(client.report("theme", "dark"), "counted");
  assert.equal(await client.flush(), true);
  const ledger = await client.ledger();
  assert.deepEqual(ledger.ownCounts, {
    theme: { dark: 3, light: 1, other: 1 },
    hours: { "0 to 2": 1, "6 to 8": 1, "22 to 24": 2 },
    startup: { "0 to 9": 1 },
    domain: { "example.org": 1, unprintable: 1 },
    both: { "theme=dark, age=18 to 64, on=true": 1 },
  });
  assert.deepEqual([ledger.counts, ledger.payloads, client.dropped], [{}, [], {}]);
  assert.ok(ledger.metrics.every(({ spent, reports }) => spent === 0 && reports === 0));
  assert.deepEqual([shuffler.requests, await keptIn(storage)], [[], []]);
  assert.doesNotMatch((await storage.readWitness()) ?? "", /dark|example/);
});

test("what waits of another run stays, and a model's examples are counted alone", async () => {
  const [storage, shuffler] = [new MemoryStorage(), new FakeShuffler()];
  const sending = await counting(storage, shuffler, { local: false });
  assert.equal(sending.report("theme", "dark"), "queued");
  await sending.settled();
  const client = await counting(storage, shuffler);
  client.report("theme", "light");
  assert.equal(await client.flush(), false);
  client.leave();
  assert.equal(shuffler.requests.length, 0);
  assert.equal(await sending.flush(), true);
  assert.equal(shuffler.reports, 1);
  const { learning } = knownAnswer("wire/asking") as { learning: Life };
  const learner = await counting(new MemoryStorage(), shuffler, {}, learning);
  const person = { hours: 12.5, plan: "paid", age: 17 };
  assert.equal(learner.learn("logistic1", person, "left"), "counted");
  assert.deepEqual((await learner.ledger()).ownCounts, { logistic1: { examples: 1 } });
});

test("a no ends the counting, and forgetting deletes the counts", async () => {
  const client = await counting(new MemoryStorage());
  client.report("theme", "dark");
  await client.settled();
  await client.disable();
  assert.equal(client.report("theme", "dark"), "disabled");
  assert.deepEqual((await client.ledger()).ownCounts, { theme: { dark: 1 } });
  await client.disable({ forget: true });
  await client.enable();
  assert.equal(client.report("theme", "light"), "counted");
  assert.deepEqual((await client.ledger()).ownCounts, { theme: { light: 1 } });
});

test("of too many values the most frequent stay", async () => {
  const client = await counting(new MemoryStorage());
  for (const times of [1, 2]) {
    for (let number = 0; number < 600 * times; number += 1)
      client.report("domain", `${number}.org`);
    await client.settled();
  }
  const { domain = {} } = (await client.ledger()).ownCounts;
  assert.equal(Object.keys(domain).length, 1000);
  assert.equal(Object.values(domain).filter((times) => times === 2).length, 600);
});

test("only a near spelling is suggested", () => {
  // As for the SDK in Python: tests/unit/test_client.py.
  for (const [typed, names, nearest] of [
    ["reports", ["report_on", "epsilon"], ""],
    ["percentile", ["experiment"], ""],
    ["percentile", ["experiment", "percentiles"], "percentiles"],
    ["crad", ["card"], "card"],
    ["xwing", ["x-wing"], "x-wing"],
    ["epsilon_per_week", ["min_batch", "epsilon_per_year"], "epsilon_per_year"],
    ["", ["a"], ""],
    ["oﬃce", ["office"], ""],
    ["STRASSE", ["straße"], "straße"],
    [
      "😀".repeat(60) + "a".repeat(60),
      ["😀".repeat(60) + "a".repeat(40)],
      "😀".repeat(60) + "a".repeat(40),
    ],
  ] as const) {
    assert.equal(meant(names, typed), nearest && `; did you mean "${nearest}"?`);
  }
});

test("who writes a wrong value hears the right ones, and which was meant", async () => {
  const client = await counting(new MemoryStorage(), new FakeShuffler(), { strict: true });
  const hint = /: "de", "en", "ja"(?:; did you mean "(\w+)"\?)?$/;
  for (const [wrongName, rightName] of [
    ["d3", undefined],
    ["DE", "de"],
    ["jaa", "ja"],
    [7, undefined],
  ]) {
    assert.throws(
      () => client.report("language", wrongName),
      ({ name, message }: Error) =>
        name === "ValueOutOfDomain" &&
        message.startsWith('metric "language": the value is not one of its 3 values: ') &&
        hint.exec(message)?.[1] === rightName,
    );
  }
  for (const missing of [undefined, null as unknown as undefined]) {
    assert.throws(() => client.report("language", missing), {
      message: 'metric "language": no value was given; it has 3 values: "de", "en", "ja"',
    });
  }
  assert.throws(() => client.report("theme", 7), { message: /the value is not a string$/ });
  assert.throws(() => client.report("startup", "x"), { message: /: value is not a whole number$/ });
});
