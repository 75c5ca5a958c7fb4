/** The mechanisms that most apps use. All others are loaded when a bundle names one. */
import { grr, rr } from "./randomized_response.js";
import type { Arguments, Mechanism, Randomizer } from "./randomizer.js";
import { optimizedUnary, symmetricUnary } from "./unary.js";
import { load } from "../loading.js";

/** These mechanisms by name. */
export const PRELOADED: ReadonlyMap<string, Mechanism> = new Map([
  ["rr", mechanism("categories", rr)],
  ["grr", mechanism("categories", grr)],
  ["unary.sue", mechanism("categories", symmetricUnary)],
  ["unary.oue", mechanism("categories", optimizedUnary)],
]);

/** The mechanism with this name; undefined if there is none. */
export async function mechanismOf(name: string): Promise<Mechanism | undefined> {
  return PRELOADED.get(name) ?? (await load("more")).mechanismNamed(name);
}

/** A mechanism of version 1. */
export function mechanism(
  values: Mechanism["values"],
  build: (settings: Arguments) => Randomizer,
): Mechanism {
  return { version: 1, values, build };
}
