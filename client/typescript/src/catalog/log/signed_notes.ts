/**
 * Checkpoints: how large a log is, and its root, in a note that the log signed (C2SP signed-note,
 * tlog-checkpoint, Ed25519). As client/hubbub/bundles/transparency_log.py.
 */
import { sha256 } from "@noble/hashes/sha2.js";

import { BundleRefused } from "../../errors.js";
import { concatenated } from "../../mechanisms/packing.js";
import { fromText, toText } from "../encoding.js";
import { keyFrom } from "../signed_lines.js";
import { isSigned } from "../signatures.js";
import type { LogKey } from "./log.js";
import { HASH_BYTES, type Tree } from "./merkle.js";

const ED25519 = 1;
const ID_BYTES = 4;
const MAX_SIGNATURES = 100;
const GAP = "\n\n";
// Python's spaces: they include these four and U+0085, but not U+FEFF.
const NAME_PATTERN = /^(?:[^\s+\x1c-\x1f\x85]|\ufeff){1,200}$/u;
const LINE = /^— ((?:[^\s+\x1c-\x1f\x85]|\ufeff)+) ([A-Za-z0-9+/=]+)$/;
/** The format of a size in checkpoints and proofs. */
export const SIZE = /^(0|[1-9][0-9]{0,15})$/;
const ENCODER = new TextEncoder();

/**
 * The tree in a note that this log signed. @throws BundleRefused the note is malformed, altered, or
 * of another log.
 */
export async function openCheckpoint(note: string, key: LogKey): Promise<Tree> {
  await refuseUnsigned(note, key);
  const [origin, size = "", root = ""] = textOf(note).split("\n");
  const tree = { size: Number(size), root: fromText(root) };
  const sized = SIZE.test(size) && Number.isSafeInteger(tree.size);
  if (origin !== key.name || !sized || tree.root.length !== HASH_BYTES) {
    throw new BundleRefused(`it has no checkpoint of ${key.name}`);
  }
  return tree;
}

/**
 * Checks the lines of one signer; lines of others, such as witnesses, are ignored.
 *
 * @throws BundleRefused it is not a note, the key did not sign it, or a signature does not match.
 */
export async function refuseUnsigned(note: string, { name, key }: LogKey): Promise<void> {
  if (!NAME_PATTERN.test(name)) throw new BundleRefused("a log has no name");
  const text = textOf(note);
  const lines = note.slice(text.length + 1).split("\n");
  if (lines.pop() !== "" || !lines.length || lines.length > MAX_SIGNATURES) {
    throw new BundleRefused("its checkpoint is not a signed note");
  }
  const publicKey = keyFrom(key);
  const namedKey = concatenated(ENCODER.encode(`${name}\n`), Uint8Array.of(ED25519), publicKey);
  const id = toText(sha256(namedKey).slice(0, ID_BYTES));
  let hasSignature = false;
  for (const line of lines) {
    const [, signer, base64 = ""] = LINE.exec(line) ?? [];
    const signatureLine = fromText(base64);
    if (signatureLine.length <= ID_BYTES)
      throw new BundleRefused("its checkpoint is not a signed note");
    if (signer !== name || toText(signatureLine.slice(0, ID_BYTES)) !== id) continue;
    hasSignature = true;
    if (!(await isSigned(publicKey, signatureLine.slice(ID_BYTES), ENCODER.encode(text)))) {
      throw new BundleRefused(`the signature of ${name} does not fit its checkpoint`);
    }
  }
  if (!hasSignature) throw new BundleRefused(`its checkpoint is not signed by ${name}`);
}

/** The text of a note, without a check of signatures. @throws BundleRefused it is not a note. */
export function textOf(note: string): string {
  const gap = note.lastIndexOf(GAP);
  if (gap < 0) throw new BundleRefused("its checkpoint is not a signed note");
  return note.slice(0, gap + 1);
}
