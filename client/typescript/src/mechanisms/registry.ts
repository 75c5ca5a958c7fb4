/**
 * All mechanisms by their names in bundles, except those of vectors, whose hashes and floats are
 * half as large as all others together: they are in ../vectors.ts. A new mechanism needs a function
 * and a line here.
 */
import { PRELOADED, mechanism } from "./preloaded.js";
import { haarResponse } from "./haar.js";
import { hadamardResponse } from "./hadamard.js";
import { longGrr, longHash, longUnary } from "./longitudinal.js";
import { tableMean } from "./mean_lookup_table.js";
import { bucketFlips, oneBitMean, piecewiseMean, squareWave } from "./numbers.js";
import { pairedParts } from "./pairs_of_parts.js";
import { privSet } from "./privset.js";
import { projectiveResponse } from "./projective.js";
import type { Mechanism } from "./randomizer.js";
import { basicRappor, rappor } from "./rappor.js";
import { countMeanSketch, hadamardSketch, localHashing } from "./sketch.js";
import { subsetSelection } from "./subset.js";
import { prefixTree } from "./tree.js";
import { load } from "../loading.js";

/** These mechanisms by name. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ...PRELOADED,
  ["subset", mechanism("categories", subsetSelection)],
  ["hadamard", mechanism("categories", hadamardResponse)],
  ["projective", mechanism("categories", projectiveResponse)],
  ["rappor.basic", mechanism("categories", basicRappor)],
  ["long.grr", mechanism("categories", longGrr)],
  ["long.hash", mechanism("categories", longHash)],
  ["long.unary", mechanism("categories", longUnary)],
  ["cms", mechanism("strings", countMeanSketch)],
  ["hcms", mechanism("strings", hadamardSketch)],
  ["local_hash", mechanism("strings", localHashing)],
  ["rappor", mechanism("strings", rappor)],
  ["tree", mechanism("strings", prefixTree)],
  ["mean.one_bit", mechanism("numbers", oneBitMean)],
  ["mean.piecewise", mechanism("numbers", piecewiseMean)],
  ["mean.table", mechanism("numbers", tableMean)],
  ["buckets", mechanism("numbers", bucketFlips)],
  ["wave", mechanism("numbers", squareWave)],
  ["haar", mechanism("numbers", haarResponse)],
  ["privset", mechanism("sets", privSet)],
  ["pairs", mechanism("parts", pairedParts)],
]);

/** The mechanism with this name, from either file. */
export async function mechanismNamed(name: string): Promise<Mechanism | undefined> {
  return MECHANISMS.get(name) ?? (await load("vectors")).MECHANISMS.get(name);
}
