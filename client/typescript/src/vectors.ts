/**
 * What metrics of vectors, and models, need, in one piece: loaded where a bundle has one.
 *
 * It begins with all of ./more.ts, so that what both share with a page's first piece is cut once.
 */
import { mechanism } from "./mechanisms/at_hand.js";
import type { Mechanism } from "./mechanisms/randomizer.js";
import { vectorCodes } from "./mechanisms/vector_codes.js";
import { MECHANISMS as OTHERS } from "./more.js";

export { modelOf } from "./catalog/models/learning.js";
export { coderOfVectors } from "./catalog/vectors.js";
export { Learner } from "./client/learner.js";

/** Every mechanism by name, those of vectors among them. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ...OTHERS,
  ["vector.codes", mechanism("vectors", vectorCodes)],
]);
