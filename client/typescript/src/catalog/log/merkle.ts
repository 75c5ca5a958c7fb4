/**
 * Append-only Merkle trees and the checks of their two kinds of proofs.
 *
 * Hashes are SHA-256. RFC 6962, section 2.1, has the trees; RFC 9162, sections 2.1.3.2 and 2.1.4.2, the
 * checks. As client/hubbub/bundles/transparency_log.py.
 */
import { sha256 } from "@noble/hashes/sha2.js";

import { BundleRefused } from "../../errors.js";
import { concatenated, type Bytes } from "../../mechanisms/packing.js";
import { toText } from "../encoding.js";

/** The length of a hash in bytes. */
export const HASH_BYTES = 32;

/** A tree: its number of leaves, and its root. */
export interface Tree {
  readonly size: number;
  readonly root: Bytes;
}

/** The hash of an entry: the first byte distinguishes it from the hash of a node. */
export function leafHash(entry: Bytes): Bytes {
  return sha256(concatenated(Uint8Array.of(0), entry));
}

/**
 * The root that a tree of `size` has if this leaf is at `index`.
 *
 * @throws BundleRefused the proof is not for this place.
 */
export function provenRoot(
  leaf: Bytes,
  index: number,
  size: number,
  proof: readonly Bytes[],
): Bytes {
  if (!(index >= 0 && index < size)) {
    throw new BundleRefused("an entry's place is outside its log");
  }
  return climbed(leaf, proof, index, size - 1).laterRoot;
}

/**
 * Checks that one tree, of one leaf at least, grew from another.
 *
 * @throws BundleRefused it did not, or the proof is for other sizes.
 */
export function refuseInconsistent(earlier: Tree, later: Tree, proof: readonly Bytes[]): void {
  if (!(earlier.size >= 1 && earlier.size <= later.size)) {
    throw new BundleRefused(
      `a log of ${earlier.size} entries cannot become a log of ${later.size}`,
    );
  }
  if (earlier.size === later.size) {
    if (proof.length || !areEqual(earlier.root, later.root)) {
      throw new BundleRefused("two trees of the same size differ");
    }
    return;
  }
  // If the earlier size is a power of two, its root is the first subtree.
  const [start, ...path] = isPower(earlier.size) ? [earlier.root, ...proof] : proof;
  if (!start) throw new BundleRefused("a proof of consistency is too short");
  let [place, lastPlace] = [earlier.size - 1, later.size - 1];
  while (place % 2) [place, lastPlace] = [parentOf(place), parentOf(lastPlace)];
  const { earlierRoot, laterRoot } = climbed(start, path, place, lastPlace);
  if (!areEqual(earlierRoot, earlier.root) || !areEqual(laterRoot, later.root)) {
    throw new BundleRefused("the later tree does not begin with the earlier tree");
  }
}

/**
 * Two roots above a subtree: of the tree that ends with it, and of the tree that ends at `lastPlace`.
 * place, lastPlace: the numbers of the subtree and of the last one among those of its height.
 */
function climbed(start: Bytes, proof: readonly Bytes[], place: number, lastPlace: number) {
  let [earlierRoot, laterRoot] = [start, start];
  for (const sibling of proof) {
    if (!lastPlace) throw new BundleRefused("a proof is too long");
    if (place % 2 || place === lastPlace) {
      [earlierRoot, laterRoot] = [nodeHash(sibling, earlierRoot), nodeHash(sibling, laterRoot)];
      while (place && !(place % 2)) [place, lastPlace] = [parentOf(place), parentOf(lastPlace)];
    } else {
      laterRoot = nodeHash(laterRoot, sibling);
    }
    [place, lastPlace] = [parentOf(place), parentOf(lastPlace)];
  }
  if (lastPlace) throw new BundleRefused("a proof is too short");
  return { earlierRoot, laterRoot };
}

function nodeHash(left: Bytes, right: Bytes): Bytes {
  return sha256(concatenated(Uint8Array.of(1), left, right));
}

function areEqual(first: Bytes, second: Bytes): boolean {
  return toText(first) === toText(second);
}

function isPower(size: number): boolean {
  let odd = size;
  while (odd % 2 === 0) odd = parentOf(odd);
  return odd === 1;
}

// Sizes may exceed 2**32, so bit shifts cannot be used.
function parentOf(place: number): number {
  return Math.floor(place / 2);
}
