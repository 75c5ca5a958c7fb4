/** What most apps ask by, at hand; all other mechanisms are loaded where a bundle names one. */
import { grr, rr } from "./listed.js";
import type { Arguments, Mechanism, Randomizer } from "./randomizer.js";
import { optimizedUnary, symmetricUnary } from "./unary.js";
import { load } from "../loading.js";

/** By name. */
export const AT_HAND: ReadonlyMap<string, Mechanism> = new Map([
  ["rr", mechanism("categories", rr)],
  ["grr", mechanism("categories", grr)],
  ["unary.sue", mechanism("categories", symmetricUnary)],
  ["unary.oue", mechanism("categories", optimizedUnary)],
]);

/** A mechanism by the name that bundles have. */
export async function mechanismOf(name: string): Promise<Mechanism | undefined> {
  return AT_HAND.get(name) ?? (await load("more")).mechanismNamed(name);
}

/** One of version 1. */
export function mechanism(
  values: Mechanism["values"],
  build: (settings: Arguments) => Randomizer,
): Mechanism {
  return { version: 1, values, build };
}
