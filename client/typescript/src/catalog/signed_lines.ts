/** Signed content in two lines, and the chain of the operator's keys. */
import { BundleRefused } from "../errors.js";
import { load } from "../loading.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { fromText, tableFrom } from "./encoding.js";
import { listed, table, text, type Table } from "./json.js";
import { isSigned } from "./signatures.js";

const KEY_BYTES = 32;

/** Signed content. line: the operator's keys in base64, oldest first; the last one signed. */
export interface Signed {
  readonly body: Table;
  readonly line: readonly string[];
}

/**
 * Verifies two lines: the signature and the content. The signature (Ed25519) covers `context`, then
 * the exact bytes of the second line.
 *
 * @throws BundleRefused the content was altered, or its handovers end at another key. Other Errors:
 * the lines are malformed.
 */
export async function signedLines(context: string, head: Bytes, body: Bytes): Promise<Signed> {
  const seal = tableFrom(head);
  const signer = text(seal["operator"]);
  const message = concatenated(new TextEncoder().encode(context), body);
  if (!(await isSigned(keyFrom(signer), fromText(text(seal["signature"])), message))) {
    throw new BundleRefused("it was altered after signing");
  }
  const document = tableFrom(body);
  const { refuseAmbiguous } = await load("checks");
  for (const line of [head, body]) refuseAmbiguous(line);
  const handovers = listed(document["handovers"] ?? []).map(table);
  if (!handovers.length) return { body: document, line: [signer] };
  const { lineOf } = await load("more");
  return { body: document, line: await lineOf(handovers, signer) };
}

/** The key in a text. @throws BundleRefused it has another length. */
export function keyFrom(base64: string, size = KEY_BYTES): Bytes {
  const bytes = fromText(base64);
  if (bytes.length !== size) throw new BundleRefused(`a key is not ${size} bytes`);
  return bytes;
}
