/** Where nothing can be kept or loaded: what is said there, and that nothing is thrown. */
import assert from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { BrowserStorage } from "../src/browser/indexeddb.js";
import { openBundle } from "../src/catalog/bundle.js";
import { BundleRefused, NotLoaded, StateUnusable } from "../src/errors.js";
import { open } from "../src/index.js";
import { MODULES } from "../src/loading.js";
import { open as openNode } from "../src/node.js";
import { knownAnswer } from "./known_answers.js";
import type { Life } from "./device_life.js";

const { signed } = knownAnswer("wire/ledger") as Life;
const bundle = new TextEncoder().encode(signed);

test("as a server renders a page nothing is fetched, thrown or reported, and that is said once", async (context) => {
  const fetched = context.mock.method(globalThis, "fetch");
  const warnMock = context.mock.method(console, "warn", () => undefined);
  const client = await open({ bundle: "/app.hubbub", strict: true });
  assert.equal(client.report("theme", "dark"), "no_state");
  assert.equal(client.learn("churn", {}, "no"), "no_state");
  await client.settled();
  client.leave();
  assert.equal(await client.flush(), true);
  assert.equal(await client.close(), true);
  assert.equal(client.report("theme", "dark"), "closed");
  assert.equal(fetched.mock.callCount(), 0);
  const warnings = warnMock.mock.calls.map(({ arguments: [text] }) => String(text));
  assert.equal(warnings.length, 1);
  assert.match(String(warnings), /neither a page nor a worker.*hubbub-client\/node/);
});

test("a WebView whose IndexedDB is null cannot store the spent budget", async () => {
  Object.defineProperty(globalThis, "indexedDB", { value: null, configurable: true });
  try {
    const storage = new BrowserStorage("app");
    storage.begin();
    await assert.rejects(
      storage.transaction(() => Promise.resolve()),
      (error) => error instanceof StateUnusable && /NotSupportedError/.test(error.message),
    );
  } finally {
    Reflect.deleteProperty(globalThis, "indexedDB");
  }
});

test("a part that cannot be loaded is named as that, and the bundle is not called a wrong one", async (context) => {
  const loadError = new TypeError("import() is disallowed on ServiceWorkerGlobalScope");
  context.mock.method(MODULES, "more", () => Promise.reject(loadError));
  const named = (error: unknown) =>
    error instanceof NotLoaded &&
    error.cause === loadError &&
    /disallowed on ServiceWorkerGlobalScope.*hubbub-client\/worker/.test(error.message);
  await assert.rejects(openBundle(bundle, null), named);
});

test("a bundle that the disk does not deliver is warned of, and only strict rejects", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "hubbub-"));
  const options = { bundle: "/proc/self/mem", folder }; // reading it is an I/O error
  const warnings = context.mock.method(console, "warn", () => undefined);
  const client = await openNode(options);
  assert.equal(client.report("theme", "dark"), "no_state");
  assert.equal(await client.close(), true);
  assert.match(String(warnings.mock.calls[0]?.arguments[0]), /self\/mem: .* cannot be read: EIO/);
  await assert.rejects(openNode({ ...options, strict: true }), BundleRefused);
  await assert.rejects(openNode({ ...options, bundle: join(folder, "missing") }), BundleRefused);
});

test("a bundle that is none is refused with what was wrong as it was read", async () => {
  const [head = "", body = ""] = signed.split("\n");
  const damagedBundle = new TextEncoder().encode(`${head}\n${body}\n`.replace("{", "["));
  await assert.rejects(openBundle(damagedBundle, null), (error) => {
    return error instanceof BundleRefused && error.message.includes("SyntaxError");
  });
});
