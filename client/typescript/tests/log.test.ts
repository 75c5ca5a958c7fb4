/** Bundles that are in a transparency log, and what a device takes after what it has seen. */
import assert from "node:assert/strict";
import test from "node:test";

import { openBundle, type Bundle } from "../src/catalog/bundle.js";
import { toText } from "../src/catalog/encoding.js";
import { leafHash, provenRoot, refuseInconsistent } from "../src/catalog/log/merkle.js";
import { refuseUnsigned } from "../src/catalog/log/signed_notes.js";
import { Client } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import { admitted } from "../src/client/admission.js";
import { loadTrust } from "../src/client/trust.js";
import { BundleRefused } from "../src/errors.js";
import { FakeShuffler } from "../src/testing.js";
import { bytesOf, hexOf, knownAnswer } from "./known_answers.js";

type Proofs = [number, number, string[]][];
interface Log {
  operator: string;
  name: string;
  runs: { shuffler: string; aggregator: string };
  shipped: [string, string, string, string];
  refused: Record<string, string>;
  "refused after": { why: string; after: number; signed: string }[];
  trees: { leaves: string[]; roots: string[]; inclusion: Proofs; consistency: Proofs };
}

const log = knownAnswer("wire/log") as Log;
// The note of the format's first implementation.
const NOTE =
  "If you think cryptography is the answer to your problem,\n" +
  "then you don't know what your problem is.\n\n" +
  "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKv" +
  "qfqdngotpRZb6KE6RyyBwJnAM=\n";
const PETER = { name: "PeterNeumann", key: "GlzZBxQ8OExB6DDFvOEqqIF+xWSaqr8sMTiLNbLXRNY=" };

function bundleOf(bundleText: string): Promise<Bundle> {
  return openBundle(new TextEncoder().encode(bundleText), toText(bytesOf(log.operator)));
}

test("a bundle proves that it is in its log, and says who runs what", async () => {
  const { proof, log: logKey, runs } = await bundleOf(log.shipped[2]);
  assert.equal(logKey?.name, log.name);
  assert.equal(proof?.after(null).size, 3);
  assert.deepEqual(runs, log.runs);
});

for (const [reason, signed] of Object.entries(log.refused)) {
  test(`a bundle is refused: ${reason}`, async () => {
    await assert.rejects(bundleOf(signed), BundleRefused);
  });
}

test("a device goes on with any later bundle of the same log", async () => {
  for (const signed of log.shipped) {
    const { trust } = admitted(null, await bundleOf(signed), false);
    const reloaded = loadTrust(JSON.parse(JSON.stringify(trust)));
    const laterTrust = admitted(reloaded, await bundleOf(log.shipped[3]), false).trust;
    assert.equal((laterTrust.log as { size: number }).size, 4);
  }
});

for (const { why, after, signed } of log["refused after"]) {
  test(`a device refuses a bundle after another: ${why}`, async () => {
    const { trust } = admitted(null, await bundleOf(log.shipped[after] ?? ""), false);
    // Also where a bundle of a lower serial would be taken.
    const bundle = { ...(await bundleOf(signed)), serial: 99 };
    const reason = { older: /older/, forked: /forked/, "another log": /another log/ }[why];
    assert.throws(() => admitted(trust, bundle, false), reason ?? /in no log/);
    assert.throws(() => admitted(trust, bundle, false), BundleRefused);
  });
}

test("what waits outlives a bundle that was refused, and the ledger says who runs what", async () => {
  const storage = new MemoryStorage();
  const options = { holdSeconds: null, now: () => 20_000 * 86_400 + 100 };
  const clientWith = async (signed: string) =>
    Client.over(await bundleOf(signed), storage, new FakeShuffler(), options);
  const firstClient = await clientWith(log.shipped[0]);
  assert.equal(firstClient.report("theme", "dark"), "queued");
  await firstClient.settled();
  const refusedCase = log["refused after"].find(({ why }) => why === "no log");
  await assert.rejects(clientWith(refusedCase?.signed ?? ""), BundleRefused);
  const nextClient = await clientWith(log.shipped[3]);
  assert.equal(await nextClient.waiting(), 1);
  assert.deepEqual((await nextClient.ledger()).runs, log.runs);
});

test("every proof of small trees holds, and none of another place or tree", () => {
  const { leaves, roots, inclusion, consistency } = log.trees;
  const rootOf = (size: number) => bytesOf(roots[size - 1] ?? "");
  for (const [index, size, hashes] of inclusion) {
    const proof = hashes.map(bytesOf);
    const leaf = leafHash(bytesOf(leaves[index] ?? ""));
    assert.equal(hexOf(provenRoot(leaf, index, size, proof)), roots[size - 1]);
    assert.notEqual(hexOf(provenRoot(rootOf(8), index, size, proof)), roots[size - 1]);
    assert.throws(() => provenRoot(leaf, index, size, [...proof, leaf]), BundleRefused);
    assert.throws(() => provenRoot(leaf, size, size, proof), BundleRefused);
    if (proof.length) {
      assert.throws(() => provenRoot(leaf, index, size, proof.slice(1)), BundleRefused);
    }
  }
  for (const [before, size, hashes] of consistency) {
    const proof = hashes.map(bytesOf);
    const [then, now] = [before, size].map((each) => ({ size: each, root: rootOf(each) }));
    assert.ok(then && now);
    refuseInconsistent(then, now, proof);
    const otherTree = { size: before, root: leafHash(rootOf(before)) };
    assert.throws(() => {
      refuseInconsistent(otherTree, now, proof);
    }, BundleRefused);
    assert.throws(() => {
      refuseInconsistent(then, now, [...proof, now.root]);
    }, BundleRefused);
  }
});

test("the specification's own note is read, and no altered one", async () => {
  await refuseUnsigned(NOTE, PETER);
  for (const wrongNote of [NOTE.replace("answer", "Answer"), NOTE.slice(0, -1), "a", "\n\n"]) {
    await assert.rejects(refuseUnsigned(wrongNote, PETER), BundleRefused);
  }
  await assert.rejects(refuseUnsigned(NOTE, { ...PETER, name: "Neumann" }), BundleRefused);
});
