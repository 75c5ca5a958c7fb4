/** Models: what learn() takes, when the state that it goes by is asked for, and what is none. */
import assert from "node:assert/strict";
import test from "node:test";

import { openBundle } from "../src/catalog/bundle.js";
import type { Features, Label } from "../src/catalog/values.js";
import { Client, type Options } from "../src/client/client.js";
import { newDevice } from "../src/client/device.js";
import { MemoryStorage } from "../src/client/memory.js";
import { StateUnusable, UnknownMetric, ValueOutOfDomain } from "../src/errors.js";
import { FakeShuffler } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";
import type { Life } from "./device_life.js";

const life = (knownAnswer("wire/asking") as { learning: Life }).learning;
const ENCODER = new TextEncoder();
const DAY = 86_400;
const START = life.start - 100;
const PERSON = { hours: 12.5, plan: "paid", age: 17 };
// In the round of the third day each of these waits for the state of the first.
const states = life.steps
  .filter(({ step }) => step === "models")
  .map((step) => step.with as string);
const [strangers = "", tooWide = "", fitting = ""] = states;

async function storageOf(secret: string): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const device = { ...newDevice(), secret, commits: 1 };
  await storage.transaction((rows) => rows.keepDevice(device));
  return storage;
}

async function clientAt(
  day: number,
  shuffler: FakeShuffler,
  options: Options = {},
  oldStorage?: MemoryStorage,
) {
  const storage = oldStorage ?? (await storageOf(life.secret));
  const settings = { holdSeconds: null, now: () => START + day * DAY + 60, ...options };
  return Client.over(
    await openBundle(ENCODER.encode(life.signed), null),
    storage,
    shuffler,
    settings,
  );
}

/** A model that waits on the third day. */
async function awaited(): Promise<string> {
  const client = await clientAt(3, new FakeShuffler());
  const names = [0, 1, 2, 3, 4, 5].map((number) => `logistic${number}`);
  const waitingName = names.find((name) => client.learn(name, PERSON, "left") === "awaits_state");
  assert.ok(waitingName);
  return waitingName;
}

test("what is no person of a model is said with its remedy, and never shown", async () => {
  const client = await clientAt(3, new FakeShuffler(), { strict: true });
  const wrongCalls: [unknown, unknown, RegExp][] = [
    [{ hours: 1, plan: "paid" }, 1, /features are hours, plan, age; missing: age; unknown: 0$/],
    [{ ...PERSON, secret: 7 }, 1, /missing: none; unknown: 1$/],
    [[1, "paid"], 1, /2 features were passed, but the model has 3: hours, plan, age$/],
    ["secret", 1, /features must be an object by name or an array$/],
    [null, 1, /features must be an object by name or an array$/],
    [
      { ...PERSON, plan: "secret" },
      1,
      /feature "plan": the value is not one of the 3 listed values: "free"/,
    ],
    [{ ...PERSON, hours: NaN }, 1, /feature "hours": the value is not a finite number$/],
    [{ ...PERSON, age: "secret" }, 1, /feature "age": the value is not a finite number$/],
    [PERSON, "LEFT ", /neither positive nor negative as written: "left" is 1, and every other/],
    [PERSON, 2, /label is neither 0 nor 1, nor "left" or another text$/],
  ];
  for (const [features, label, message] of wrongCalls) {
    assert.throws(
      () => client.learn("logistic1", features as Features, label as Label),
      (error: Error) =>
        error instanceof ValueOutOfDomain &&
        error.message.startsWith('model "logistic1": ') &&
        message.test(error.message) &&
        !error.message.includes("secret"),
    );
  }
  assert.throws(
    () => client.learn("softmax1", PERSON, "Month"),
    /not one of the classes as written/,
  );
  assert.throws(() => client.learn("linear1", PERSON, "1"), /label is not a finite number$/);
  assert.throws(() => client.learn("none", PERSON, 1), /no model of this name; it has logistic0/);
  assert.throws(() => client.report("logistic1", 1), /call learn\(\), not report\(\)/);
  assert.deepEqual(client.clipped, {});
  client.learn("linear1", { hours: 41, plan: "free", age: -1 }, 91);
  client.learn("linear1", [-1, "free", 64], 91);
  assert.deepEqual(client.clipped, { linear1: 5 });
});

test("a metric that is no model is told by report()", async () => {
  const { vectors } = knownAnswer("wire/asking") as { vectors: Life };
  const bundle = await openBundle(ENCODER.encode(vectors.signed), null);
  const client = await Client.over(bundle, new MemoryStorage(), new FakeShuffler(), {
    ...{ holdSeconds: null, strict: true, now: () => vectors.start, public: { os: "linux" } },
  });
  assert.throws(() => client.learn("scores", [1], 1), /"scores" is not a model/);
  assert.equal(client.report("scores", Float64Array.of(1, 2, 0.5)), "queued");
  assert.equal(client.report("scores", Float32Array.of(1, 2, 0.5)), "queued");
  assert.throws(() => client.report("scores", [1, NaN, NaN]), {
    name: "ValueOutOfDomain",
    message: /^metric "scores": coordinate "[a-z0-9]+" is not a finite number$/,
  });
  const notOnes = [[1, , 2], new DataView(new ArrayBuffer(24)), ["1", "2", "3"]];
  for (const value of notOnes) {
    assert.throws(() => client.report("scores", value as unknown as number[]), ValueOutOfDomain);
  }
});

test("the state that an example waits for is fetched in the background, and it is sent", async () => {
  const shuffler = new FakeShuffler();
  shuffler.models = ENCODER.encode(fitting);
  const name = await awaited();
  const client = await clientAt(3, shuffler, { holdSeconds: 0 });
  assert.equal(client.learn(name, PERSON, "left"), "awaits_state");
  const deadline = Date.now() + 30_000;
  while (shuffler.reports === 0 && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(shuffler.reports, 1);
  const [, ledger] = [client.learn(name, PERSON, "left"), await client.ledger()];
  assert.equal(ledger.metrics.find((metric) => metric.name === name)?.reports, 1);
  assert.equal(client.outcomes["already_reported"], 1);
  await client.close();
});

test("a state of others, or of another size, is not taken, and what waits waits on", async () => {
  const shuffler = new FakeShuffler();
  const name = await awaited();
  const client = await clientAt(3, shuffler);
  client.learn(name, PERSON, "left");
  const altered = fitting.replace('"number":0', '"number":1');
  for (const state of ["", "{}\n{}", strangers, tooWide, altered, fitting.trim() + "\n{}\n"]) {
    shuffler.models = ENCODER.encode(state);
    assert.equal(await client.flush(), false);
    assert.equal(shuffler.reports, 0);
  }
  shuffler.failing = "unavailable";
  assert.equal(await client.flush(0.1), false);
  shuffler.failing = null;
  shuffler.models = ENCODER.encode(fitting);
  assert.equal(await client.flush(), true);
  assert.equal(shuffler.reports, 1);
});

test("who has told awaits no state on the next page", async () => {
  const shuffler = new FakeShuffler();
  shuffler.models = ENCODER.encode(fitting);
  const [name, storage] = [await awaited(), await storageOf(life.secret)];
  const client = await clientAt(3, shuffler, {}, storage);
  assert.equal(client.learn(name, PERSON, "left"), "awaits_state");
  assert.equal(await client.close(), true);
  const before = shuffler.requests.length;
  const nextClient = await clientAt(3, shuffler, {}, storage);
  assert.equal(nextClient.learn(name, PERSON, "left"), "already_reported");
  assert.equal(await nextClient.flush(), true);
  assert.equal(shuffler.requests.length, before);
});

test("who says no takes what waits for a state along", async () => {
  const shuffler = new FakeShuffler();
  shuffler.models = ENCODER.encode(fitting);
  const name = await awaited();
  const client = await clientAt(3, shuffler);
  assert.equal(client.learn(name, PERSON, "left"), "awaits_state");
  await client.disable();
  assert.deepEqual(client.dropped, { disabled: 1 });
  assert.equal(client.learn(name, PERSON, "left"), "disabled");
  await client.enable();
  assert.equal(await client.flush(), true);
  assert.equal(shuffler.requests.length, 0);
});

test("an example that still waits as the client is closed is given up, and the app is told", async () => {
  const name = await awaited();
  const drops: string[] = [];
  const onDrop = (metric: string, reason: string) => drops.push(`${metric} ${reason}`);
  const client = await clientAt(3, new FakeShuffler(), { onDrop });
  client.learn(name, PERSON, "left");
  client.learn(name, PERSON, "left"); // in the place of the first
  // Whatever time it takes: nothing but the example waits.
  assert.equal(await client.close(), false);
  assert.deepEqual(drops, [`${name} replaced`, `${name} awaits_state`]);
  assert.deepEqual(client.dropped, { replaced: 1, awaits_state: 1 });
});

test("an example that is refused as the state comes is given up, and the app is told", async () => {
  const shuffler = new FakeShuffler();
  shuffler.models = ENCODER.encode(fitting);
  const [name, drops] = [await awaited(), [] as string[]];
  const onDrop = (metric: string, reason: string) => drops.push(`${metric} ${reason}`);
  const storage = await storageOf(life.secret);
  const clients = [
    await clientAt(3, shuffler, {}, storage),
    await clientAt(3, shuffler, { onDrop }, storage),
  ];
  for (const client of clients) {
    assert.equal(client.learn(name, PERSON, "left"), "awaits_state");
  }
  assert.equal(await clients[0]?.flush(), true);
  await clients[1]?.enable(); // which sees what was spent by the other
  assert.equal(await clients[1]?.flush(), true);
  assert.deepEqual(drops, [`${name} already_reported`]);
  assert.equal(shuffler.reports, 1);
});

test("where nothing can be kept no model is told", async () => {
  const refusing = new MemoryStorage();
  refusing.transaction = () => Promise.reject(new StateUnusable("no room"));
  const bundle = await openBundle(ENCODER.encode(life.signed), null);
  const client = await Client.over(bundle, refusing, new FakeShuffler(), {
    ...{ holdSeconds: null, now: () => START + 3 * DAY },
  });
  assert.equal(client.learn("logistic1", PERSON, "left"), "no_state");
  assert.equal(client.learn("logistic1", {}, "left"), "not_a_value");
});

test("a promise of all rounds is shown as one for life", async () => {
  const { metrics } = await (await clientAt(3, new FakeShuffler())).ledger();
  const days = new Map(metrics.map((metric) => [metric.name, metric.centralDays]));
  assert.deepEqual([days.get("logistic0"), days.get("logistic1")], [Infinity, null]);
});

test("a model that says what is not known is refused by name, and the others go on", async () => {
  const { metricFrom } = await import("../src/catalog/metric.js");
  const [, body = ""] = life.signed.split("\n");
  const entry = (JSON.parse(body) as { metrics: Record<string, Record<string, unknown>> }).metrics[
    "logistic1"
  ];
  assert.ok(entry);
  const model = entry["model"] as Record<string, unknown>;
  const parameters = entry["parameters"] as Record<string, number>;
  for (const wrongFields of [
    { model: { ...model, kind: "forest" } },
    { model: { ...model, depth: 3 } },
    { model: { ...model, features: [["hours", { low: 0 }]] } },
    { model: { ...model, begins: "soon" } },
    { model: { ...model, features: [...(model["features"] as unknown[]), ["more", [0, 1]]] } },
    { model: { ...model, rounds_each: 2 } },
    { parameters: { ...parameters, dimensions: 7 } },
    { reports_per_epoch: 2 },
    { lifetime_epsilon: 40 },
    { mechanism: "grr", values: ["a", "b"], parameters: {} },
  ]) {
    await assert.rejects(
      metricFrom("logistic1", { ...entry, ...wrongFields }, false),
      UnknownMetric,
    );
  }
  const metric = await metricFrom("logistic1", entry, false);
  assert.ok(metric.model);
  // What is learned, and when, may never change under its name.
  const laterEntry = { ...entry, model: { ...model, begins: "2024-10-06" } };
  const otherMetric = await metricFrom("logistic1", laterEntry, false);
  assert.notDeepEqual(otherMetric.digests, metric.digests);
});
