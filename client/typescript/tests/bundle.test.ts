import assert from "node:assert/strict";
import test from "node:test";

import { metricOf, openBundle, type Bundle } from "../src/catalog/bundle.js";
import { spelledOf } from "../src/catalog/definition.js";
import { fromText, toText } from "../src/catalog/encoding.js";
import { muWithin } from "../src/catalog/gaussian_privacy.js";
import { metricFrom } from "../src/catalog/metric.js";
import { streamWithin } from "../src/catalog/tiers.js";
import { samplingOf } from "../src/catalog/sampling.js";
import type { Accounts } from "../src/client/account.js";
import { charged } from "../src/client/ledger.js";
import { named } from "../src/client/options.js";
import { admitted } from "../src/client/admission.js";
import { loadTrust } from "../src/client/trust.js";
import { BundleRefused, UnknownMetric, ValueOutOfDomain } from "../src/errors.js";
import { bytesOf, hexOf, knownAnswer } from "./known_answers.js";

interface Answers {
  operator: string;
  signed: string;
  shuffler: string;
  keys: { id: number; start: number; end: number; public: string }[];
  values: Record<string, string[]>;
  development: string;
  refused: Record<string, string>;
}

const answers = knownAnswer("wire/bundle") as Answers;
const operator = toText(bytesOf(answers.operator));
const METRIC_ENTRY = {
  ...{ mechanism: "grr", version: 1, epsilon: 1, parameters: {}, values: ["a", "b"], epoch: "day" },
  ...{ description: "?", owner: "?", expires: "2099-12-31", min_batch: 100 },
  ...{ reports_per_epoch: 1, lifetime_epsilon: 50 },
};

function bundleOf(bundleText: string, pinned: string | null = operator): Promise<Bundle> {
  return openBundle(new TextEncoder().encode(bundleText), pinned);
}

test("the bundle says what it said", async () => {
  const bundle = await bundleOf(answers.signed);
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
  assert.equal(bundle.development, false);
  assert.equal((await bundleOf(answers.development)).development, true);
});

for (const [reason, signed] of Object.entries(answers.refused)) {
  test(`a bundle is refused: ${reason}`, async () => {
    await assert.rejects(bundleOf(signed), BundleRefused);
  });
}

test("without a pinned operator whoever signed is taken, unless the device knows another", async () => {
  const stranger = await bundleOf(answers.refused["another operator's"] ?? "", null);
  const { trust } = admitted(null, await bundleOf(answers.signed), false);
  assert.throws(() => admitted(trust, stranger, false), BundleRefused);
  assert.equal(admitted(trust, stranger, true).another, true);
  assert.deepEqual(loadTrust(JSON.parse(JSON.stringify(trust))), trust);
});

test("a later bundle may not take more than was promised", async () => {
  const bundle = await bundleOf(answers.signed);
  const { trust } = admitted(null, bundle, false);
  const bundleWith = async (changes: object): Promise<Bundle> => {
    const entry = { ...METRIC_ENTRY, values: ["light", "dark", "日本"], ...changes };
    const json = JSON.stringify(entry).replace('"epsilon":1,', '"epsilon":1.0,');
    const spelled = spelledOf(new TextEncoder().encode(json));
    const theme = await metricFrom("theme", entry, false, spelled);
    return { ...bundle, metrics: new Map([["theme", theme]]) };
  };
  assert.equal(admitted(trust, await bundleWith({}), false).another, false);
  for (const changes of [{ reports_per_epoch: 2 }, { lifetime_epsilon: 51 }, { epoch: "hour" }]) {
    const raised = await bundleWith(changes);
    assert.throws(() => admitted(trust, raised, false), /promised/);
  }
  const less = admitted(trust, await bundleWith({ lifetime_epsilon: 7 }), false).trust;
  assert.throws(() => admitted(less, bundle, false), /lifetime raised from 7 to 50/);
  const newer = admitted(trust, { ...bundle, serial: 3 }, false).trust;
  assert.throws(() => admitted(newer, { ...bundle, serial: 2 }, false), /newer/);
});

test("what asks more than this version does is refused, not misread", async () => {
  for (const changes of [
    { mechanism: "unary.new" },
    { version: 2 },
    { something: 0.5 },
    { kind: "colour" },
    // A set that is told as one value, and one value as a set.
    { kind: "set" },
    { mechanism: "privset", parameters: { most: 1 } },
    // When a device speaks, and what tells it apart.
    { period: "30d" },
    { period: "30d", report_on: "two days" },
    { period: "1y", report_on: "one day" },
    { breakdown: [["os", [["linux", ["[z-a]"]]]]] },
    // Who looks for strings, at which epsilon, and so many that the list would count nobody.
    { discover: 0.2, tiers: [0.5] },
    { discover: 0.2, central_epsilon: 0.5, crowd: 100 },
    { discover: 0.2, default: "a" },
    { discover: 0.2, breakdown: [["os", [["linux", ["linux"]]]]] },
    { discover: 0.95 },
    { discover: 0 },
    // It says more than its epsilon.
    { mechanism: "rappor.basic", epsilon: 0.1, parameters: { f: 0.5, p: 0.25, q: 0.75 } },
  ]) {
    await assert.rejects(
      metricFrom("theme", { ...METRIC_ENTRY, ...changes }, false),
      UnknownMetric,
    );
  }
});

test("a list that has grown means what its first one did, and goes to a stream of its own", async () => {
  const bundle = await bundleOf(answers.signed);
  const shortEntry = { ...METRIC_ENTRY, values: ["light", "dark", "日本"] };
  const before = new Map([["theme", await metricFrom("theme", shortEntry, false)]]);
  const { trust } = admitted(null, { ...bundle, metrics: before }, false);
  const grownEntry = {
    ...shortEntry,
    values: [...shortEntry.values, "system"],
    grown: [3],
    tiers: [0.5],
  };
  const theme = await metricFrom("theme", grownEntry, false);
  assert.deepEqual(
    theme.streams.map((stream) => stream.name),
    ["theme/v4", "theme/v4/0.5"],
  );
  const laterBundle = { ...bundle, metrics: new Map([["theme", theme]]) };
  assert.equal(admitted(trust, laterBundle, false).another, false);
  const otherMetric = await metricFrom(
    "theme",
    { ...grownEntry, values: ["a", "b", "c", "d"] },
    false,
  );
  const changed = { ...bundle, metrics: new Map([["theme", otherMetric]]) };
  assert.throws(() => admitted(trust, changed, false), /definition changed/);
});

test("more values to tell apart are no other definition, and more fields are", async () => {
  const bundle = await bundleOf(answers.signed);
  const bundleWith = async (breakdown: object): Promise<Bundle> => {
    const theme = await metricFrom("theme", { ...METRIC_ENTRY, breakdown }, false);
    return { ...bundle, metrics: new Map([["theme", theme]]) };
  };
  const os = ["os", [["linux", ["linux"]]]];
  const { trust } = admitted(null, await bundleWith([os]), false);
  const wider = [
    [
      "os",
      [
        ["linux", ["linux"]],
        ["other", ["*"]],
      ],
    ],
  ];
  assert.equal(admitted(trust, await bundleWith(wider), false).another, false);
  const widerBundle = await bundleWith([os, ["version", [["2", ["2.*"]]]]]);
  assert.throws(() => admitted(trust, widerBundle, false), /definition changed/);
});

test("more devices that look for strings are no other definition, and the first is", async () => {
  const bundle = await bundleOf(answers.signed);
  const bundleWith = async (changes: object): Promise<Bundle> => {
    const entry = { ...METRIC_ENTRY, values: ["a", "other"], other: true, ...changes };
    return { ...bundle, metrics: new Map([["theme", await metricFrom("theme", entry, false)]]) };
  };
  const { trust } = admitted(null, await bundleWith({ discover: 0.2 }), false);
  assert.equal(admitted(trust, await bundleWith({ discover: 0.4 }), false).another, false);
  const bareBundle = await bundleWith({});
  assert.throws(() => admitted(trust, bareBundle, false), /definition changed/);
});

test("patterns are those of a shell, letter by letter", async () => {
  const cell = async (pattern: string, value: string) => {
    const breakdown = [["os", [["held", [pattern]]]]];
    const metric = await metricFrom("theme", { ...METRIC_ENTRY, breakdown }, false);
    return metric.breakdown?.cell({ os: () => value }) === "@os=held";
  };
  // As fnmatch.fnmatchcase of Python has them.
  for (const [pattern, sample, fits] of [
    ["2.*", "2.10", true],
    ["2.*", "2x10", false],
    ["*", "", true],
    ["a?c", "a日c", true],
    ["a?c", "ac", false],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["[]x]", "]", true],
    ["[^a]", "^", true],
    ["[a", "[a", true],
    ["[]", "[]", true],
    ["a.(b)|c", "a.(b)|c", true],
    ["x*", "a\nx", false],
    ["x*", "x\ny", true],
    ["\\d", "7", false],
    ["Linux", "linux", false],
  ] as const) {
    assert.equal(await cell(pattern, sample), fits, `${pattern} ${sample}`);
  }
});

test("a metric whose choice by auto has no runner-up is read", async () => {
  const best = { mechanism: "grr", parameters: {}, stderr: 0, payload_bytes: 1, cells: 2 };
  const choice = { reports: 1000, best, runner_up: null };
  assert.equal((await metricFrom("theme", { ...METRIC_ENTRY, choice }, false)).code("b"), 1);
  await assert.rejects(metricFrom("theme", { ...METRIC_ENTRY, owner: null }, false), TypeError);
});

test("a set is a bit for each of its values", async () => {
  const sets = { mechanism: "privset", parameters: { most: 2 }, kind: "set" };
  const values = ["a", "b", "other"];
  const listedSet = await metricFrom("used", { ...METRIC_ENTRY, ...sets, values }, false);
  assert.equal(listedSet.code([]), 0n);
  assert.equal(listedSet.code(["b", "a", "b"]), 3n);
  assert.equal(listedSet.code(new Set(["other"])), 4n);
  for (const value of ["a", { a: true }, null, ["a", "secret"], [1], new Map([["a", "b"]])]) {
    assert.throws(
      () => listedSet.code(value),
      (error: Error) => error instanceof ValueOutOfDomain && !error.message.includes("secret"),
    );
  }
  const setWithOther = await metricFrom(
    "used",
    { ...METRIC_ENTRY, ...sets, values, other: true },
    false,
  );
  assert.equal(setWithOther.code(["b", "anything"]), 6n);
});

test("a person's preference chooses the tier", async () => {
  const tiered = await metricFrom("theme", { ...METRIC_ENTRY, tiers: [0.25, 0.5] }, false);
  assert.equal(streamWithin(tiered, Infinity, Infinity)?.name, "theme");
  assert.equal(streamWithin(tiered, 0.6, Infinity)?.name, "theme/0.5");
  assert.equal(streamWithin(tiered, 0.2, Infinity), undefined);
  const crowded = await metricFrom(
    "theme",
    { ...METRIC_ENTRY, central_epsilon: 0.5, crowd: 100 },
    false,
  );
  assert.equal(streamWithin(crowded, 0.5, Infinity)?.name, "theme");
  assert.equal(streamWithin(crowded, 0.5, 0.5), undefined);
});

test("a metric of which more is asked than this client knows is refused, with the way on", async () => {
  const newer = { ...METRIC_ENTRY, period_of_grace: 2 };
  await assert.rejects(
    metricFrom("theme", newer, false),
    /has period_of_grace: upgrade hubbub, or leave it out/,
  );
});

test("a value that is none is refused, and never shown", async () => {
  const metric = await metricFrom("theme", METRIC_ENTRY, false);
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

test("a metric may be called what every object inherits", async () => {
  const bundle = await bundleOf(answers.signed);
  const name = "constructor";
  const metric = await metricFrom(name, METRIC_ENTRY, false);
  const askingBundle = { ...bundle, history: {}, metrics: new Map([[name, metric]]) };
  const { trust } = admitted(null, askingBundle, false);
  assert.equal(
    admitted(loadTrust(JSON.parse(JSON.stringify(trust))), askingBundle, false).another,
    false,
  );
  const [stream] = metric.streams;
  const caps = { bySpan: new Map(), crowds: null };
  const charge = { metric, stream, epoch: 1, tag: "" };
  const accounts = charged({}, charge, caps);
  assert.equal(charged(accounts as Accounts, charge, caps), "already_reported");
  const notice = { number: 1, until: 2 ** 40, line: [], steps: {} };
  assert.equal(samplingOf(metric, 1, notice), 1);
});

test("a retired name comes back with no more than it promised", async () => {
  const bundle = await bundleOf(answers.signed);
  const figures = { epsilon: 1, reports: 1, lifetime: 5, central: null };
  const history = Object.fromEntries((await metricFrom("shape", METRIC_ENTRY, false)).digests);
  const retired = {
    ...bundle,
    metrics: new Map(),
    history,
    promised: new Map([["shape", figures]]),
  };
  const { trust } = admitted(null, retired, false);
  const bundleWith = async (lifetime: number): Promise<Bundle> => {
    const shape = await metricFrom("shape", { ...METRIC_ENTRY, lifetime_epsilon: lifetime }, false);
    return { ...bundle, metrics: new Map([["shape", shape]]), history };
  };
  admitted(trust, await bundleWith(5), false);
  const widerBundle = await bundleWith(50);
  assert.throws(() => admitted(trust, widerBundle, false), /lifetime raised from 5 to 50/);
  const former = admitted(null, { ...widerBundle, history: {} }, false).trust;
  const raised = { ...(await bundleWith(51)), history: {} };
  assert.throws(() => admitted(former, raised, false), /lifetime raised from 50 to 51/);
});

test("noise dummies of parts name one cell of the table of all parts", async () => {
  const values = ["a", "b", "c"].flatMap((part) => [`${part}=x`, `${part}=y`]);
  const crowd = { central_epsilon: 1, crowd: 30_000, min_batch: 30_000, lifetime_epsilon: 500 };
  const law = { dummies_scale: 2.02, dummies_shift: 61 };
  const parts = { mechanism: "pairs", epsilon: 8, parameters: { ways: 3 }, values };
  const entry = { ...METRIC_ENTRY, ...crowd, ...law, ...parts };
  const { streams } = await metricFrom("met", entry, false);
  assert.equal(streams[0].randomizer.namedCells, 8);
  const wrongFields = [{ parameters: { ways: 2 } }, { epsilon: 0.5 }, { dummies_shift: 90_000 }];
  for (const change of wrongFields) {
    await assert.rejects(metricFrom("met", { ...entry, ...change }, false), TypeError);
  }
});

test("dummies of a fixed sum are those of a mean", async () => {
  const crowd = { central_epsilon: 1, crowd: 30_000, min_batch: 30_000, lifetime_epsilon: 500 };
  const law = { dummies_scale: 5.05, dummies_shift: 147, dummies_sum_scale: 26.93 };
  const mean = { mechanism: "mean.piecewise", epsilon: 8, values: null };
  const parameters = { low: 0, high: 60, steps: 16 };
  const entry = { ...METRIC_ENTRY, ...crowd, ...law, ...mean, parameters };
  assert.ok(await metricFrom("met", entry, false));
  assert.ok(await metricFrom("met", { ...entry, dummies_shift: 14_679 }, false));
  const wrongFields = [
    { dummies_shift: 14_680 }, // the shuffler seals those that fix the sum, too
    { dummies_sum_scale: 0.01 },
    { mechanism: "mean.one_bit", parameters: { low: 0, high: 60 } },
    { dummies_scale: 0, dummies_shift: 0 },
    { dummies_sum_scale: 601 },
    { mechanism: "grr", parameters: {}, values: ["a", "b"] },
  ];
  for (const change of wrongFields) {
    await assert.rejects(metricFrom("met", { ...entry, ...change }, false), TypeError);
  }
});

test("an error about an address shows no password and no signature", async () => {
  const address = "https://app:SECRET@example.org/app.hubbub?sig=SECRET#SECRET";
  const failed = () => Promise.reject(new TypeError(`cannot parse ${address} as an address`));
  await assert.rejects(named(address, failed), {
    message:
      "https://example.org/app.hubbub: the bundle cannot be fetched: " +
      "cannot parse https://example.org/app.hubbub as an address",
  });
});
