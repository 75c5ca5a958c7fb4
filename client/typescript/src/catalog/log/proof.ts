/**
 * Checks a bundle's proof about its log: its place, a checkpoint, and how the log grew.
 *
 * The proof is the bundle's third line. The log entry of a bundle is the SHA-256 of the two lines
 * before it. As client/hubbub/bundles/transparency_log.py.
 */
import { sha256 } from "@noble/hashes/sha2.js";

import { BundleRefused } from "../../errors.js";
import type { Bytes } from "../../mechanisms/packing.js";
import { fromText, tableFrom, toText } from "../encoding.js";
import { listed, number, table, text, wholeNumber } from "../json.js";
import type { LogKey, LogProof, SeenLog } from "./log.js";
import { HASH_BYTES, leafHash, provenRoot, refuseInconsistent, type Tree } from "./merkle.js";
import { refuseAmbiguous } from "../bundle_checks.js";
import { openCheckpoint, SIZE } from "./signed_notes.js";

/**
 * The proof in a bundle's third line. content: the first two lines, with their line ends. key: the
 * key of the log that the bundle names.
 *
 * @throws BundleRefused the proof is of another log or another bundle. Other Errors: it is not a
 * proof.
 */
export async function openProof(line: Bytes, content: Bytes, key: LogKey): Promise<LogProof> {
  const document = tableFrom(line);
  refuseAmbiguous(line);
  const now = await openCheckpoint(text(document["checkpoint"]), key);
  if (document["hubbub log"] !== 1) throw new BundleRefused("it has no valid proof of the log");
  const entry = new TextEncoder().encode(`hubbub/1 bundle\n${hex(sha256(content))}\n`);
  const index = wholeNumber(document["index"]);
  const root = provenRoot(leafHash(entry), index, now.size, hashesOf(document["inclusion"]));
  if (toText(root) !== toText(now.root)) {
    throw new BundleRefused(`it is not in the log ${key.name} that it names`);
  }
  const growthProofs = new Map(
    Object.entries(table(document["grown"])).map(([size, proof]) => {
      if (!SIZE.test(size)) throw new BundleRefused("the size of its log is invalid");
      return [Number(size), hashesOf(proof)];
    }),
  );
  const tree = { ...key, size: now.size, root: toText(now.root) };
  return {
    after(earlier) {
      if (earlier !== null) refuseFork(seenFrom(earlier), tree, growthProofs);
      return tree;
    },
  };
}

/** @throws TypeError the document is not a view of a log. */
function seenFrom(document: unknown): SeenLog {
  const seenTree = table(document);
  const [name, key, root] = [text(seenTree["name"]), text(seenTree["key"]), text(seenTree["root"])];
  return { name, key, size: number(seenTree["size"]), root };
}

function refuseFork(
  earlier: SeenLog,
  current: SeenLog,
  growthProofs: ReadonlyMap<number, Bytes[]>,
): void {
  const { name } = earlier;
  if (name !== current.name || earlier.key !== current.key) {
    throw new BundleRefused(
      `bundles of this app are in the log ${name}, but this bundle names another log or another key; ` +
        "ship a bundle that is in that log",
    );
  }
  if (current.size < earlier.size) {
    throw new BundleRefused(
      `the bundle's checkpoint of ${name} is older (${current.size} entries) than the last one on ` +
        `this device (${earlier.size}); ship the newer bundle`,
    );
  }
  const proof = growthProofs.get(earlier.size);
  if (!proof && current.size > earlier.size) {
    throw new BundleRefused(
      `the bundle does not prove how ${name} grew from ${earlier.size} entries, its last size on ` +
        "this device; build it with the log of the previous bundle",
    );
  }
  try {
    refuseInconsistent(treeOf(earlier), treeOf(current), proof ?? []);
  } catch (error) {
    throw new BundleRefused(
      `the log ${name} has forked: ${(error as Error).message}. Somebody saw another log than ` +
        "this device; keep the old and the new bundle, and run: hubbub log audit",
      { cause: error },
    );
  }
}

function treeOf({ size, root }: SeenLog): Tree {
  return { size, root: fromText(root) };
}

function hashesOf(value: unknown): Bytes[] {
  const hashes = listed(value).map((entry) => fromText(text(entry)));
  if (hashes.some((hash) => hash.length !== HASH_BYTES)) {
    throw new BundleRefused("a hash has a wrong length");
  }
  return hashes;
}

function hex(bytes: Bytes): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
