/** Every mechanism that this version can report with, by the name that bundles have. */
import type { BitSource } from "./bits.js";
import { GeneralizedRandomizedResponse } from "./grr.js";
import { randomizedResponse } from "./rr.js";

/** Turns a value in [0, categories) into a payload; all its payloads have one length. */
export interface Randomizer {
  randomize(value: number, source: BitSource): Uint8Array<ArrayBuffer>;
}

/** A mechanism, and the version of it that is meant. epsilon is in nats. */
export interface Mechanism {
  readonly version: number;
  build(epsilon: number, categories: number): Randomizer;
}

/** By name. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  [
    "grr",
    {
      version: 1,
      build: (epsilon: number, categories: number) =>
        new GeneralizedRandomizedResponse(epsilon, categories),
    },
  ],
  ["rr", { version: 1, build: randomizedResponse }],
]);
