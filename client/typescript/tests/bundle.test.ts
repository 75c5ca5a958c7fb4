import assert from "node:assert/strict";
import test from "node:test";

import { metricOf, openBundle, type Bundle } from "../src/catalog/bundle.js";
import { fromText, toText } from "../src/catalog/encoding.js";
import { muWithin } from "../src/catalog/gaussian.js";
import { metricFrom } from "../src/catalog/metric.js";
import { streamWithin } from "../src/catalog/tiers.js";
import { admitted, loadTrust } from "../src/client/trust.js";
import { BundleRefused, UnknownMetric, ValueOutOfDomain } from "../src/errors.js";
import { bytesOf, hexOf, known } from "./known.js";

interface Answers {
  operator: string;
  signed: string;
  shuffler: string;
  keys: { id: number; start: number; end: number; public: string }[];
  values: Record<string, string[]>;
  refused: Record<string, string>;
}

const answers = known("wire/bundle") as Answers;
const operator = toText(bytesOf(answers.operator));
const ENTRY = {
  ...{ mechanism: "grr", version: 1, epsilon: 1, parameters: {}, values: ["a", "b"], epoch: "day" },
  ...{ description: "?", owner: "?", expires: "2099-12-31", min_batch: 100 },
  ...{ reports_per_epoch: 1, lifetime_epsilon: 50 },
};

function opened(signed: string, pinned: string | null = operator): Promise<Bundle> {
  return openBundle(new TextEncoder().encode(signed), pinned);
}

test("the bundle says what it said", async () => {
  const bundle = await opened(answers.signed);
  assert.equal(bundle.shuffler, answers.shuffler);
  assert.deepEqual(
    bundle.keys.map(({ publicKey, ...key }) => ({ ...key, public: hexOf(publicKey) })),
    answers.keys,
  );
  assert.deepEqual([...bundle.metrics.keys()], Object.keys(answers.values));
  for (const [name, values] of Object.entries(answers.values)) {
    const metric = metricOf(bundle, name);
    assert.deepEqual(
      values.map((value) => metric.code(value)),
      [...values.keys()],
    );
  }
  assert.deepEqual(bundle.line, [operator]);
});

for (const [why, signed] of Object.entries(answers.refused)) {
  test(`a bundle is refused: ${why}`, async () => {
    await assert.rejects(opened(signed), BundleRefused);
  });
}

test("without a pinned operator whoever signed is taken, unless the device knows another", async () => {
  const stranger = await opened(answers.refused["another operator's"] ?? "", null);
  const { trust } = admitted(null, await opened(answers.signed), false);
  assert.throws(() => admitted(trust, stranger, false), BundleRefused);
  assert.equal(admitted(trust, stranger, true).another, true);
  assert.deepEqual(loadTrust(JSON.parse(JSON.stringify(trust))), trust);
});

test("a later bundle may not take more than was promised", async () => {
  const bundle = await opened(answers.signed);
  const { trust } = admitted(null, bundle, false);
  const asking = async (more: object): Promise<Bundle> => {
    const theme = await metricFrom(
      "theme",
      { ...ENTRY, values: ["light", "dark", "日本"], ...more },
      false,
    );
    return { ...bundle, metrics: new Map([["theme", theme]]) };
  };
  assert.equal(admitted(trust, await asking({}), false).another, false);
  for (const more of [{ reports_per_epoch: 2 }, { lifetime_epsilon: 51 }, { epoch: "hour" }]) {
    const raised = await asking(more);
    assert.throws(() => admitted(trust, raised, false), /promised/);
  }
  const less = admitted(trust, await asking({ lifetime_epsilon: 7 }), false).trust;
  assert.throws(() => admitted(less, bundle, false), /lifetime raised from 7 to 50/);
  const newer = admitted(trust, { ...bundle, serial: 3 }, false).trust;
  assert.throws(() => admitted(newer, { ...bundle, serial: 2 }, false), /newer/);
});

test("what asks more than this version does is refused, not misread", async () => {
  for (const more of [
    { mechanism: "unary.new" },
    { version: 2 },
    { something: 0.5 },
    { kind: "colour" },
    // A set that is told as one value, and one value as a set.
    { kind: "set" },
    { mechanism: "privset", parameters: { most: 1 } },
    // When a device speaks, in which stream and for which list of values.
    { default: "a" },
    { period: "30d", report_on: "one day" },
    { breakdown: [["os", [["linux", ["linux"]]]]] },
    { grown: [1] },
    // It says more than its epsilon.
    { mechanism: "rappor.basic", epsilon: 0.1, parameters: { f: 0.5, p: 0.25, q: 0.75 } },
  ]) {
    await assert.rejects(metricFrom("theme", { ...ENTRY, ...more }, false), UnknownMetric);
  }
});

test("of a list that has grown the metric alone is refused", async () => {
  const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const signer = toText(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)));
  const signed = async (version: number) => {
    const body = JSON.parse(answers.signed.split("\n")[1] ?? "") as object;
    const metrics = { theme: ENTRY, grown: { ...ENTRY, grown: [1] } };
    const told = JSON.stringify({ ...body, version, metrics, handovers: [] });
    const bytes = new TextEncoder().encode(`hubbub/1 bundle\n${told}`);
    const signature = toText(
      new Uint8Array(await crypto.subtle.sign("Ed25519", pair.privateKey, bytes)),
    );
    const head = JSON.stringify({ "hubbub bundle": 1, operator: signer, signature });
    return opened(`${head}\n${told}\n`, signer);
  };
  const bundle = await signed(2);
  assert.deepEqual([...bundle.metrics.keys()], ["theme"]);
  assert.throws(() => metricOf(bundle, "grown"), UnknownMetric);
  await assert.rejects(signed(3), BundleRefused);
});

test("a set is a bit for each of its values", async () => {
  const sets = { mechanism: "privset", parameters: { most: 2 }, kind: "set" };
  const values = ["a", "b", "other"];
  const plain = await metricFrom("used", { ...ENTRY, ...sets, values }, false);
  assert.equal(plain.code([]), 0n);
  assert.equal(plain.code(["b", "a", "b"]), 3n);
  assert.equal(plain.code(new Set(["other"])), 4n);
  for (const value of ["a", { a: true }, null, ["a", "secret"], [1], new Map([["a", "b"]])]) {
    assert.throws(
      () => plain.code(value),
      (error: Error) => error instanceof ValueOutOfDomain && !error.message.includes("secret"),
    );
  }
  const others = await metricFrom("used", { ...ENTRY, ...sets, values, other: true }, false);
  assert.equal(others.code(["b", "anything"]), 6n);
});

test("a person's preference chooses the tier", async () => {
  const tiered = await metricFrom("theme", { ...ENTRY, tiers: [0.25, 0.5] }, false);
  assert.equal(streamWithin(tiered, Infinity, Infinity)?.name, "theme");
  assert.equal(streamWithin(tiered, 0.6, Infinity)?.name, "theme/0.5");
  assert.equal(streamWithin(tiered, 0.2, Infinity), undefined);
  const crowded = await metricFrom("theme", { ...ENTRY, central_epsilon: 0.5, crowd: 9 }, false);
  assert.equal(streamWithin(crowded, 0.5, Infinity)?.name, "theme");
  assert.equal(streamWithin(crowded, 0.5, 0.5), undefined);
});

test("a metric whose devices make dummies is refused, with the reason", async () => {
  const padded = { ...ENTRY, central_epsilon: 0.5, crowd: 9, dummies_each: 0.1 };
  await assert.rejects(
    metricFrom("theme", padded, false),
    /devices make dummies, which this client/,
  );
});

test("a value that is none is refused, and never shown", async () => {
  const metric = await metricFrom("theme", ENTRY, false);
  for (const value of ["secret", 1, null, undefined, {}, true]) {
    assert.throws(
      () => metric.code(value),
      (error: Error) => error instanceof ValueOutOfDomain && !error.message.includes("secret"),
    );
  }
});

test("a year of crowds has as much room as Python says", () => {
  for (const [epsilon, delta, mu] of [
    [400, 0.9e-8, 23.240015253424644],
    [1, 0.9e-8, 0.19535344105679542],
    [30, 1e-6, 4.408865712583065],
  ] as const) {
    assert.ok(Math.abs(muWithin(epsilon, delta) / mu - 1) < 1e-8);
  }
});

test("a text that is no key is refused", () => {
  assert.throws(() => fromText("*"));
});
