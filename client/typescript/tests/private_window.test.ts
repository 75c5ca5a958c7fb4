/** What a browser is taken for by what it has to keep things in. */
import assert from "node:assert/strict";
import test from "node:test";

import { isPrivate } from "../src/browser/indexeddb.js";

test("a browser that refuses its directory is a private window, and one without is none", async (context) => {
  const pretend = (storage: object) => {
    Object.defineProperty(globalThis, "navigator", { value: storage, configurable: true });
  };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  context.after(() => {
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else Reflect.deleteProperty(globalThis, "navigator");
  });
  const reject = () => Promise.reject(new DOMException("", "SecurityError"));
  pretend({ storage: { getDirectory: reject } });
  assert.equal(await isPrivate(), true);
  for (const storage of [{ getDirectory: () => Promise.resolve({}) }, {}]) {
    pretend({ storage });
    assert.equal(await isPrivate(), false);
  }
  pretend({}); // WebKitGTK
  assert.equal(await isPrivate(), false);
});
