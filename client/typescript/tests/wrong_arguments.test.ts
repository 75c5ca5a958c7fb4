/** JavaScript has no compiler: whatever is given, an outcome or one of this package's own errors. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";

import { open as openPage } from "../src/browser/open.js";
import { partedValue } from "../src/catalog/parts.js";
import type { Client } from "../src/client/client.js";
import {
  BadParameter,
  BundleRefused,
  HubbubError,
  StateUnusable,
  UnknownMetric,
  ValueOutOfDomain,
} from "../src/errors.js";
import { defineLedger } from "../src/ledger.js";
import { open as openNode } from "../src/node.js";
import { httpsPost } from "../src/node/https.js";
import { capture, KeyedBits, memoryClient } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";
import type { Life } from "./device_life.js";

/** As JavaScript calls them. */
type Loose = (...values: unknown[]) => unknown;

const life = knownAnswer("wire/ledger") as { signed: string; start: number };
const bundleBytes = new TextEncoder().encode(life.signed);
const WRONG_VALUES: readonly unknown[] = [
  ...[undefined, null, true, 7, -1, NaN, Infinity, 7n, "", "x", Symbol("x"), () => 7],
  ...[
    {},
    [],
    [null],
    new Set([{}]),
    new Map(),
    new Date(0),
    Object.create(null) as object,
    new Uint8Array(),
  ],
  ...[{ bundle: null }, { forget: {} }, { maxLocal: "x" }, new URL("file:///nowhere")],
];
const OPTIONS = [
  ...["bundle", "folder", "app", "holdSeconds", "strict", "maxEpsilon", "public", "onDrop", "now"],
  ...["coins", "ask", "operatorNamed", "operator", "shuffler", "account", "relay", "unknown"],
];
const folder = await mkdtemp(join(tmpdir(), "hubbub-"));
const bundle = join(folder, "app.hubbub");
await writeFile(bundle, bundleBytes);

after(() => rm(folder, { recursive: true }));

function newClient(strict: boolean): Promise<Client> {
  return memoryClient(bundleBytes, { strict, now: () => life.start });
}

/** What a call does; what is thrown is ours, or the test fails. */
async function tried(call: Loose, ...values: unknown[]): Promise<unknown> {
  try {
    return await call(...values);
  } catch (error) {
    assert.ok(error instanceof HubbubError, String((error as Error).stack));
    return error;
  }
}

/** Of a client, by method, what it may be given that is right, as the rest is made wrong in turn. */
const METHODS: readonly [keyof Client, readonly unknown[]][] = [
  ["report", ["theme", "dark"]],
  ["report", ["domain", "example.org"]],
  ["report", ["hours", 7.5]],
  ["report", ["startup", 7]],
  ["report", ["both", { theme: "dark", age: 41, on: true }]],
  ["report", ["asked", true]],
  ["flush", [0]],
  ["disable", [{ forget: true }]],
  ["enable", []],
  ["prefer", [0.5, { maxLocal: 0.5 }]],
  ["ledger", []],
  ["waiting", []],
  ["settled", []],
  ["leave", []],
  ["close", [0]],
];

for (const strict of [true, false]) {
  for (const [method, validArguments] of METHODS) {
    test(`${method}(${JSON.stringify(validArguments).slice(1, -1)}) takes anything, strict ${strict}`, async () => {
      const client = await newClient(strict);
      const call = (client[method] as Loose).bind(client);
      for (const wrongValue of WRONG_VALUES) {
        for (let index = 0; index <= validArguments.length; index += 1) {
          const came = await tried(
            call,
            ...validArguments.slice(0, index),
            wrongValue,
            ...validArguments.slice(index + 1),
          );
          if (method === "report" && !strict) assert.equal(typeof came, "string");
        }
      }
      // Nothing that was said has damaged the device.
      if (method === "close") return;
      await client.prefer(null);
      await client.enable();
      assert.equal((await client.ledger()).on, true);
      // Who forgot keeps that this epoch was answered.
      const outcome = client.report("language", "de");
      assert.equal(outcome, method === "disable" ? "already_reported" : "queued");
    });
  }
}

test("what a person cannot mean is no preference, and the former one holds", async () => {
  const client = await newClient(true);
  await client.prefer(0.3);
  await assert.rejects((client.prefer as Loose).call(client, 7, 0.2) as Promise<void>, /maxLocal/);
  const limits = [null, 7, Infinity];
  for (const wrongValue of WRONG_VALUES.filter((value) => !limits.includes(value as number))) {
    await assert.rejects((client.prefer as Loose).call(client, wrongValue) as Promise<void>, {
      message: "prefer(): maxEpsilon: give 0 or more, in nats, or null for any",
    });
  }
  assert.equal((await client.ledger()).metrics[0]?.epsilon.toFixed(2), "0.25");
  await client.prefer(Infinity);
  assert.equal((await client.ledger()).metrics[0]?.epsilon.toFixed(2), "1.00");
});

test("a wrong timeout is refused if strict, and warned of once in production", async (context) => {
  const warnings = context.mock.method(console, "warn", () => undefined);
  const [strict, lenient] = [await newClient(true), await newClient(false)];
  for (const wrongArgument of ["x", null, true, [1], Symbol("x")]) {
    const message = /^(flush|close)\(\): timeoutSeconds is [a-z]+; give number$/;
    for (const method of ["flush", "close"] as const) {
      const ended = (strict[method] as Loose).call(strict, wrongArgument) as Promise<boolean>;
      await assert.rejects(ended, { name: "BadParameter", message });
    }
    assert.equal(await (lenient.flush as Loose).call(lenient, wrongArgument), true);
  }
  assert.equal(await (lenient.close as Loose).call(lenient, "x"), true);
  assert.equal(await strict.close(), true);
  assert.equal(warnings.mock.callCount(), 1);
});

test("a no without its options is a no, and a wrong one stops this page", async () => {
  for (const [wrongOptions, problem] of [
    [null, null],
    [{ forget: "yes" }, "disable(): forget is string; give boolean"],
    ["forget", "disable(): give options as { forget: ... }"],
    [{ forgot: true }, "disable(): give options as { forget: ... }"],
  ] as const) {
    const client = await newClient(false);
    const came = await tried((client.disable as Loose).bind(client), wrongOptions);
    assert.equal(came instanceof BadParameter ? came.message : null, problem);
    assert.equal(client.report("theme", "dark"), "disabled");
  }
});

for (const [caseName, open, requiredOptions] of [
  ["a page", openPage as unknown as Loose, { bundle: "/app.hubbub" }],
  ["Node", openNode as unknown as Loose, { bundle, folder: join(folder, "device") }],
] as const) {
  test(`open() of ${caseName} takes no options of other types, and says which`, async () => {
    for (const wrongOptions of [undefined, null, 7, "x", true, {}, [], { bundle: undefined }]) {
      const error = await tried(open, wrongOptions);
      assert.ok(error instanceof BadParameter);
      assert.match(error.message, /^open\(\)/);
    }
    for (const option of OPTIONS) {
      for (const wrongValue of WRONG_VALUES) {
        if (option === "folder" && wrongValue === "x") continue; // a folder as any
        // A text may be a place where no bundle is; all else is of another type, or out of range.
        const came = await tried(open, {
          ...requiredOptions,
          shuffler: "https://[::1]:1",
          [option]: wrongValue,
        });
        if (came instanceof BadParameter) assert.match(came.message, new RegExp(option));
        if (came instanceof HubbubError) continue;
        await (came as Client).close(0);
      }
    }
  });
}

test("a bundle may be given by its bytes in Node, too", async () => {
  const client = await openNode({
    ...{ bundle: bundleBytes, folder: join(folder, "of bytes"), shuffler: "https://[::1]:1" },
    holdSeconds: null,
  });
  await client.close(0);
});

test("what is wrong is named, with what is right", async () => {
  const node = openNode as unknown as Loose;
  const requiredOptions = { bundle, folder: join(folder, "device") };
  const shuffler = "https://[::1]:1";
  for (const [options, message] of [
    [undefined, "open(): bundle is undefined; give string, or object: URL or Uint8Array"],
    [
      { ...requiredOptions, bundle: { path: "x" } },
      "open(): bundle is an object; give string, or object: URL or Uint8Array",
    ],
    [{ bundle }, "open(): folder is undefined; give string"],
    [{ bundle, folder: "" }, "open(): folder has no name; give string"],
    [
      { bundle, folder: "~/state" },
      "open(): folder begins with ~, which only a shell replaces; write it out",
    ],
    [{ bundle, folder: bundle }, "open(): folder is a file; give a folder"],
    [{ bundle, folder: "/dev/null" }, "open(): folder is a file; give a folder"],
    [{ ...requiredOptions, strict: "no" }, "open(): strict is string; give boolean"],
    [
      { ...requiredOptions, holdSeconds: "60" },
      "open(): holdSeconds is string; give number or null",
    ],
    [{ ...requiredOptions, shuffler, holdSeconds: -1 }, "holdSeconds -1 is outside [0, 86400]"],
    [{ ...requiredOptions, shuffler, maxEpsilon: NaN }, "maxEpsilon NaN is outside [0, Infinity]"],
    [{ ...requiredOptions, public: null }, "open(): public is null; give object"],
    [{ ...requiredOptions, shuffler: 7 }, "open(): shuffler is number; give string"],
    [
      { ...requiredOptions, shuffler, public: { os: 1 } },
      'public: os is number; give string or function, as { os: "linux" }',
    ],
    [
      { ...requiredOptions, shuffler, strict: true, account: "x" },
      "account is given, but the bundle's reports need no tokens; leave it out",
    ],
    [
      { ...requiredOptions, operator: "abc" },
      "open(): operator is not a public key of 32 bytes; give it in base64",
    ],
  ] as const) {
    assert.equal(((await tried(node, options)) as Error).message, message);
  }
  for (const now of [Date.now, () => new Date()]) {
    const { message } = (await tried(node, { ...requiredOptions, shuffler, now })) as Error;
    assert.equal(message, "now must return seconds since 1970, as () => Date.now() / 1000");
  }
  for (const [option, hint] of [
    ["operater", '; did you mean "operator"?'],
    ["toString", ""],
  ] as const) {
    const { message } = (await tried(node, { ...requiredOptions, [option]: "x" })) as Error;
    assert.ok(
      message.startsWith(`open() has no option ${option}; there are account, bundle, folder, `),
    );
    assert.ok(message.endsWith(`, operator, public, relay, shuffler, strict${hint}`));
  }
  const page = openPage as unknown as Loose;
  assert.match(
    ((await tried(page, { bundle: new ArrayBuffer(8) })) as Error).message,
    /bundle is an object; give string, or object: URL or Uint8Array/,
  );
});

test("what is for tests, and the element, take anything too", async () => {
  const captured = capture();
  for (const wrongValue of WRONG_VALUES) {
    assert.ok((await tried(memoryClient as unknown as Loose, wrongValue)) instanceof HubbubError);
    await tried(memoryClient as unknown as Loose, bundleBytes, wrongValue);
    await tried((key) => new KeyedBits(key as Uint8Array), wrongValue);
    await tried(defineLedger as Loose, wrongValue);
    assert.deepEqual((captured.values as Loose)(wrongValue), []);
  }
  captured.stop();
});

test("a device's state that this version cannot read reports nothing, and says so", async () => {
  const { MemoryStorage } = await import("../src/client/memory.js");
  const { Client } = await import("../src/client/client.js");
  const { openBundle } = await import("../src/catalog/bundle.js");
  const { FakeShuffler } = await import("../src/testing.js");
  for (const document of [7, null, {}, { secret: "x" }]) {
    const storage = new MemoryStorage();
    await storage.transaction((rows) => rows.keepDevice(document));
    const askingBundle = await openBundle(bundleBytes, null);
    const client = await Client.over(askingBundle, storage, new FakeShuffler(), {
      holdSeconds: null,
    });
    assert.equal(client.report("theme", "dark"), "no_state");
    await assert.rejects(client.ledger(), StateUnusable);
  }
});

/** What throws as it is looked at, each in another way, with what nobody may see in its text. */
function hostile(): unknown[] {
  const fails = () => {
    throw new Error("secret");
  };
  const traps = { get: fails, has: fails, ownKeys: fails, getPrototypeOf: fails };
  const revoked = Proxy.revocable([], {});
  revoked.revoke();
  return [
    ...[new Proxy({}, traps), new Proxy([], traps), new Proxy(() => 7, traps), revoked.proxy],
    ...[Object.defineProperty({}, "theme", { get: fails, enumerable: true })],
    ...[{ [Symbol.toPrimitive]: fails, toString: fails, valueOf: fails }],
    Object.assign([1, 2, 3], { [Symbol.iterator]: fails }),
    Object.assign(new Set(["a"]), { [Symbol.iterator]: fails }),
  ];
}

test("what throws as it is looked at is no value, and its text is nobody's", async (context) => {
  const warnings = context.mock.method(console, "warn", () => undefined);
  const askingLives = knownAnswer("wire/asking") as Record<
    "vectors" | "learning" | "discovering",
    Life
  >;
  const lives = [life, askingLives.vectors, askingLives.learning, askingLives.discovering];
  for (const strict of [true, false]) {
    for (const askingLife of lives) {
      const content = new TextEncoder().encode(askingLife.signed);
      const options = {
        strict,
        now: () => askingLife.start,
        public: { os: "linux", version: "2.1" },
      };
      const client = await memoryClient(content, options);
      const [, body = ""] = askingLife.signed.split("\n");
      const { metrics } = JSON.parse(body) as { metrics: object };
      for (const [index, value] of hostile().entries()) {
        for (const name of [...Object.keys(metrics), value]) {
          for (const call of [
            () => (client.report as Loose).call(client, name, value),
            () => (client.learn as Loose).call(client, name, value, value),
          ]) {
            const came = await tried(call);
            const outcome = came instanceof UnknownMetric || came instanceof ValueOutOfDomain;
            const mistake = came === "unknown_metric" || came === "not_a_value";
            assert.ok(strict ? outcome : mistake, `${String(index)} ${String(came)}`);
            assert.ok(!String(came).includes("secret"));
          }
        }
      }
    }
  }
  assert.ok(warnings.mock.callCount() > 0);
  assert.ok(!JSON.stringify(warnings.mock.calls.map((call) => call.arguments)).includes("secret"));
});

test("what an app says in the clear and throws as it is asked is its mistake, and is not shown", async () => {
  const { apart } = knownAnswer("wire/asking") as { apart: Life };
  const content = new TextEncoder().encode(apart.signed);
  const os = () => {
    throw new Error("secret");
  };
  const over = (strict: boolean) =>
    memoryClient(content, { strict, now: () => apart.start, public: { os, version: "2.1" } });
  const [strict, lenient] = [await over(true), await over(false)];
  const [, body = ""] = apart.signed.split("\n");
  const { metrics } = JSON.parse(body) as { metrics: Record<string, { breakdown?: object }> };
  const name = Object.keys(metrics).find((metric) => metrics[metric]?.breakdown) ?? "";
  const failure = {
    name: "BadParameter",
    message: /^public: os throws as it is read; pass a text/,
  };
  assert.throws(() => strict.report(name, "a"), failure);
  assert.equal(lenient.report(name, "a"), "failed");
});

test("a value in the place of a metric's name is never shown, and the remedy is", async (context) => {
  const warnings = context.mock.method(console, "warn", () => undefined);
  const strict = await newClient(true);
  const message =
    /^the bundle has no (metric of this name; it has .*theme.*|model of this name; it has none); pass the name first, then the value$/;
  for (const call of [
    () => strict.report("my secret", "theme"),
    () => strict.report("theme/0.5", "secret"), // a stream's name
    () => strict.learn("my secret", {}, 1),
  ]) {
    assert.throws(call, (error: Error) => {
      return (
        error instanceof UnknownMetric &&
        message.test(error.message) &&
        !/secret/.test(error.message)
      );
    });
  }
  assert.throws(() => strict.report("Thme", "dark"), /then the value; did you mean "theme"\?$/);
  // Once of each kind, and of each metric: whatever is said otherwise of it, or how often.
  const lenient = await newClient(false);
  for (let number = 0; number < 100; number += 1) {
    lenient.report(`secret ${String(number)}`, "theme");
    lenient.report("language", `secret ${String(number)}`);
    lenient.report("hours", `secret ${String(number)}`);
  }
  const lines = warnings.mock.calls.map(({ arguments: [line] }) => String(line));
  assert.equal(lines.length, 3);
  assert.ok(lines.every((line) => !line.includes("secret")));
});

test("a console that throws stops no report", async (context) => {
  const client = await newClient(false);
  const warn = context.mock.method(console, "warn", () => {
    client.report("theme", "dark");
    throw new Error("replaced by the app");
  });
  assert.equal(client.report("colour", "dark"), "unknown_metric");
  assert.equal(warn.mock.callCount(), 1);
});

test("a bundle's text in place of its path is not shown whole", async () => {
  for (const text of [life.signed, "no/such/file"]) {
    const error = await tried(openNode as unknown as Loose, { bundle: text, folder });
    assert.ok(error instanceof BundleRefused);
    assert.match(error.message, /the bundle cannot be read: .*; give the path of its file/);
    assert.equal(error.message.includes(text), text === "no/such/file");
    assert.ok(error.message.length < 300 && error.cause === undefined);
  }
  await writeFile(bundle, "a note");
  const error = await tried(openNode as unknown as Loose, { bundle, folder });
  assert.ok((error as Error).message.startsWith(`${bundle}: the bundle is refused: it must have`));
  await writeFile(bundle, bundleBytes);
});

test("a value that lacks a part is refused with the names of all parts", () => {
  const values = new Map([
    ["age", ["young", "old"]],
    ["work", ["yes", "no"]],
  ]);
  assert.throws(() => partedValue({ values, ranges: new Map() }, { age: "old" }), {
    message: "part work is missing; give each of age, work one of its values",
  });
});

test("no file or folder in the place of another keeps a program from its end", async (context) => {
  const options = { bundle, shuffler: "https://127.0.0.1:1", now: () => life.start };
  const named = (name: string) => join(folder, name);
  context.mock.method(console, "warn", () => undefined);
  await mkdir(named("pipes"));
  for (const pipe of ["app.pipe", "pipes.witness.5", "pipes/state.1"])
    execFileSync("mkfifo", [named(pipe)]);
  await assert.rejects(
    openNode({ ...options, bundle: named("app.pipe"), folder: named("other") }),
    BundleRefused,
  );
  // Node's own mkdir never ends in the second.
  for (const place of [named("pipes"), "/proc/self/hubbub"]) {
    const client = await openNode({ ...options, folder: place });
    assert.ok(["queued", "no_state", "disabled"].includes(client.report("theme", "dark")));
    await client.close(0);
  }
});

test("a program whose working directory is gone opens a client", async (context) => {
  const [before, gone] = [process.cwd(), join(folder, "gone")];
  context.mock.method(console, "warn", () => undefined);
  await mkdir(gone);
  process.chdir(gone);
  context.after(() => {
    process.chdir(before);
  });
  await rm(gone, { recursive: true });
  const options = { bundle, shuffler: "https://127.0.0.1:1", now: () => life.start };
  const client = await openNode({ ...options, folder: "device" });
  assert.equal(client.report("theme", "dark"), "no_state");
  await client.close(0);
});

test("a proxy that is not used is named once, and without its password", async (context) => {
  const warnings = context.mock.method(console, "warn", () => undefined);
  process.env["HTTPS_PROXY"] = "http://user:password@proxy.invalid:3128";
  context.after(() => delete process.env["HTTPS_PROXY"]);
  const signal = AbortSignal.timeout(10_000);
  const post = httpsPost(null);
  await assert.rejects(post("https://127.0.0.1:1/", "text/plain", new Uint8Array(), signal));
  assert.equal(warnings.mock.callCount(), 0);
  for (let time = 0; time < 2; time += 1)
    await assert.rejects(post("https://h.invalid/", "text/plain", new Uint8Array(), signal));
  assert.deepEqual(
    warnings.mock.calls.map((call) => call.arguments),
    [["hubbub: HTTPS_PROXY is set, but in Node the client uses no proxy: it connects directly"]],
  );
});

test("an address that cannot work, or has a password, is refused", async () => {
  const options = { bundle, folder: join(folder, "addresses"), now: () => life.start };
  for (const place of ["h:0", "user:password@h:1", "h:1?x", "h b:1", "", "h:70000"]) {
    for (const name of ["shuffler", "relay"]) {
      await assert.rejects(openNode({ ...options, [name]: `https://${place}` }), (error: Error) => {
        return error instanceof BadParameter && !error.message.includes("password");
      });
    }
  }
});
