/**
 * Handovers: how an operator's earlier keys led to the one that signs. Loaded only if there are
 * handovers.
 */
import { BundleRefused } from "../errors.js";
import { concatenated } from "../mechanisms/packing.js";
import { fromText } from "./encoding.js";
import { text, type Table } from "./json.js";
import { isSigned } from "./signatures.js";
import { keyFrom } from "./signed_lines.js";

const HANDOVER = new TextEncoder().encode("hubbub/1 handover\n");
const MAX_HANDOVERS = 16;

/**
 * The chain of keys that the handovers form, `signer` last.
 *
 * @throws BundleRefused the chain ends at another key, or repeats a key.
 */
export async function lineOf(handovers: readonly Table[], signer: string): Promise<string[]> {
  if (handovers.length > MAX_HANDOVERS) throw new BundleRefused("it has too many handovers");
  const line = [...handovers.map((handover) => text(handover["old"])), signer];
  for (const [index, handover] of handovers.entries()) {
    const [oldKey, newKey] = [keyFrom(text(handover["old"])), text(handover["new"])];
    const signature = fromText(text(handover["signature"]));
    if (
      newKey !== line[index + 1] ||
      !(await isSigned(oldKey, signature, concatenated(HANDOVER, oldKey, keyFrom(newKey))))
    ) {
      throw new BundleRefused("its handovers do not lead to the key that signed it");
    }
  }
  if (new Set(line).size !== line.length) throw new BundleRefused("its handovers repeat a key");
  return line;
}
