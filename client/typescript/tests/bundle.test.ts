import assert from "node:assert/strict";
import test from "node:test";

import {
  BundleRefused,
  fromText,
  metricOf,
  NotNow,
  openBundle,
  SystemBits,
  uncountedReport,
  UnknownMetric,
  ValueOutOfDomain,
  type Bundle,
} from "../src/index.js";
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
const START = answers.keys[0]?.start ?? NaN;

function opened(signed: string): Promise<Bundle> {
  return openBundle(new TextEncoder().encode(signed), bytesOf(answers.operator));
}

test("the bundle says what it said", async () => {
  const bundle = await opened(answers.signed);
  assert.equal(bundle.shuffler, answers.shuffler);
  assert.deepEqual(
    bundle.keys.map(({ id, start, end, publicKey }) => ({
      id,
      start,
      end,
      public: hexOf(publicKey),
    })),
    answers.keys,
  );
  assert.deepEqual(Object.keys(bundle.metrics), Object.keys(answers.values));
  for (const [name, values] of Object.entries(answers.values)) {
    assert.deepEqual(metricOf(bundle, name).values, values);
  }
});

for (const [why, signed] of Object.entries(answers.refused)) {
  test(`a bundle is refused: ${why}`, async () => {
    await assert.rejects(opened(signed), BundleRefused);
  });
}

test("what asks more than this version does is refused, not misread", async () => {
  const { metrics, ...bundle } = await opened(answers.signed);
  const theme = metrics["theme"] as object;
  for (const more of [
    { sampling: 0.5 },
    { mechanism: "unary.oue" },
    { version: 2 },
    { values: null },
  ]) {
    const asked = { ...bundle, metrics: { theme: { ...theme, ...more } } };
    await assert.rejects(
      uncountedReport(asked, "theme", "dark", START, new SystemBits()),
      UnknownMetric,
    );
  }
});

test("how a mechanism was chosen, and what is published, is nothing to a device", async () => {
  const { metrics, ...bundle } = await opened(answers.signed);
  const theme = { ...(metrics["theme"] as object), choice: {}, release: {} };
  assert.equal(metricOf({ ...bundle, metrics: { theme } }, "theme").name, "theme");
});

test("a report is of a metric, a value and a day that the bundle has", async () => {
  const bundle = await opened(answers.signed);
  const report = (name: string, value: string, moment: number) =>
    uncountedReport(bundle, name, value, moment, new SystemBits());
  const { stream, epoch, keyId, sealed } = await report("theme", "日本", START + 86_399);
  assert.deepEqual([stream, epoch, keyId, sealed.length], ["theme", START / 86_400, 1, 1 + 48]);
  await assert.rejects(report("toString", "dark", START), UnknownMetric);
  await assert.rejects(report("theme", "blue", START), ValueOutOfDomain);
  await assert.rejects(report("theme", "dark", START - 1), NotNow);
  await assert.rejects(report("theme", "dark", Date.UTC(2100, 0) / 1000), NotNow);
});

test("a text that is no key is refused", () => {
  assert.throws(() => fromText("*"));
});
