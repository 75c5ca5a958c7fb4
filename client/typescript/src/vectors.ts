/** What metrics of vectors need, in one piece: loaded where a bundle has one. */
import { mechanism } from "./mechanisms/at_hand.js";
import type { Mechanism } from "./mechanisms/randomizer.js";
import { vectorCodes } from "./mechanisms/vector_codes.js";

export { vectorCode } from "./catalog/vectors.js";

/** Mechanisms of vectors by name. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ["vector.codes", mechanism("vectors", vectorCodes)],
]);
