/** Signing keys: who signed two lines, and how an operator's earlier keys led to that one. */
import { BundleRefused } from "../errors.js";
import { joined, type Bytes } from "../mechanisms/packing.js";
import { fromText, parsed } from "./encoding.js";
import { listed, table, text, type Table } from "./json.js";
import { isSigned } from "./signatures.js";

const HANDOVER = new TextEncoder().encode("hubbub/1 handover\n");
const KEY_BYTES = 32;
const MAX_HANDOVERS = 16;

/** What somebody signed. line: the operator's keys in base64, oldest first; the last one signed. */
export interface Signed {
  readonly body: Table;
  readonly line: readonly string[];
}

/**
 * What two lines say: who signed, and what. The signature (Ed25519) is over the second line's bytes as
 * they stand, after `context`.
 *
 * @throws BundleRefused altered after signing, or its handovers lead elsewhere. Other Errors: none.
 */
export async function signedLines(context: string, head: Bytes, body: Bytes): Promise<Signed> {
  const seal = parsed(head);
  const signer = text(seal["operator"]);
  const message = joined(new TextEncoder().encode(context), body);
  if (!(await isSigned(keyFrom(signer), fromText(text(seal["signature"])), message))) {
    throw new BundleRefused("altered after signing");
  }
  const told = parsed(body);
  return { body: told, line: await lineOf(listed(told["handovers"] ?? []).map(table), signer) };
}

/** The key in a text. @throws BundleRefused it has another length. */
export function keyFrom(base64: string, size = KEY_BYTES): Bytes {
  const bytes = fromText(base64);
  if (bytes.length !== size) throw new BundleRefused(`a key is not ${size} bytes`);
  return bytes;
}

/** The keys that handovers lead through, `signer` last. */
async function lineOf(handovers: readonly Table[], signer: string): Promise<string[]> {
  if (handovers.length > MAX_HANDOVERS) throw new BundleRefused("it has too many handovers");
  const line = [...handovers.map((handover) => text(handover["old"])), signer];
  for (const [at, handover] of handovers.entries()) {
    const [old, next] = [keyFrom(text(handover["old"])), text(handover["new"])];
    const signature = fromText(text(handover["signature"]));
    if (
      next !== line[at + 1] ||
      !(await isSigned(old, signature, joined(HANDOVER, old, keyFrom(next))))
    ) {
      throw new BundleRefused("its handovers do not lead to the key that signed");
    }
  }
  if (new Set(line).size !== line.length) throw new BundleRefused("its handovers come back");
  return line;
}
