/** Handovers: how an operator's earlier keys led to the one that signs. Loaded where there are any. */
import { BundleRefused } from "../errors.js";
import { concatenated } from "../mechanisms/packing.js";
import { fromText } from "./encoding.js";
import { text, type Table } from "./json.js";
import { isSigned } from "./signatures.js";
import { keyFrom } from "./signed_lines.js";

const HANDOVER = new TextEncoder().encode("hubbub/1 handover\n");
const MAX_HANDOVERS = 16;

/**
 * The keys that handovers lead through, `signer` last.
 *
 * @throws BundleRefused they lead elsewhere, or come back.
 */
export async function lineOf(handovers: readonly Table[], signer: string): Promise<string[]> {
  if (handovers.length > MAX_HANDOVERS) throw new BundleRefused("it has too many handovers");
  const line = [...handovers.map((handover) => text(handover["old"])), signer];
  for (const [index, handover] of handovers.entries()) {
    const [previous, next] = [keyFrom(text(handover["old"])), text(handover["new"])];
    const signature = fromText(text(handover["signature"]));
    if (
      next !== line[index + 1] ||
      !(await isSigned(previous, signature, concatenated(HANDOVER, previous, keyFrom(next))))
    ) {
      throw new BundleRefused("its handovers do not lead step by step to the key that signed");
    }
  }
  if (new Set(line).size !== line.length) throw new BundleRefused("its handovers come back");
  return line;
}
