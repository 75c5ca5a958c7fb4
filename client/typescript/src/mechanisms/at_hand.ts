/** What most apps ask by, at hand; all other mechanisms are loaded where a bundle names one. */
import { grr, rr } from "./listed.js";
import type { Arguments, Mechanism, Randomizer } from "./randomizer.js";
import { optimizedUnary, symmetricUnary } from "./unary.js";

/** By name. */
export const AT_HAND: ReadonlyMap<string, Mechanism> = new Map([
  ["rr", mechanism("categories", rr)],
  ["grr", mechanism("categories", grr)],
  ["unary.sue", mechanism("categories", symmetricUnary)],
  ["unary.oue", mechanism("categories", optimizedUnary)],
]);

// Their hashes and floats weigh as much as half of all others.
const OF_VECTORS = "vector.";

/** A mechanism by the name that bundles have. */
export async function mechanismOf(name: string): Promise<Mechanism | undefined> {
  const own = AT_HAND.get(name);
  if (own) return own;
  const { MECHANISMS } = name.startsWith(OF_VECTORS)
    ? await import("../vectors.js")
    : await import("../more.js");
  return MECHANISMS.get(name);
}

/** One of version 1. */
export function mechanism(
  values: Mechanism["values"],
  build: (given: Arguments) => Randomizer,
): Mechanism {
  return { version: 1, values, build };
}
