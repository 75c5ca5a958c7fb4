/** Where a browser sends: over HTTPS, or to this machine. */
import assert from "node:assert/strict";
import test from "node:test";

import { fetchTransport } from "../src/browser/fetching.js";
import { BadParameter } from "../src/errors.js";

test("a browser sends over HTTPS, or to this machine", () => {
  for (const address of [
    "https://shuffler.example.org:443",
    "http://127.0.0.1:7077",
    "http://localhost:5173",
  ]) {
    assert.ok(fetchTransport(address));
  }
  for (const address of [
    "http://shuffler.example.org:80",
    "http://127.0.0.1.example.org:80",
    "http://localhost.example.org:80",
    "https:shuffler.example.org",
    "http:xx127.0.0.1:80",
    "shuffler.example.org:443",
  ]) {
    assert.throws(() => fetchTransport(address), BadParameter);
  }
});
