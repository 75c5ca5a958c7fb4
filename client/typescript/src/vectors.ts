/**
 * Everything that metrics of vectors and models need, in one file that is loaded on demand.
 *
 * It imports all of ./more.ts first, so that the bundler splits off the modules shared with the
 * page's first file only once.
 */
import { mechanism } from "./mechanisms/preloaded.js";
import type { Mechanism } from "./mechanisms/randomizer.js";
import { vectorCodes } from "./mechanisms/vector_codes.js";
import { MECHANISMS as OTHERS } from "./more.js";

export { modelOf } from "./catalog/models/learning.js";
export { coderOfVectors } from "./catalog/vectors.js";
export { Learner } from "./client/learner.js";

/** All mechanisms by name, including those of vectors. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ...OTHERS,
  ["vector.codes", mechanism("vectors", vectorCodes)],
]);
