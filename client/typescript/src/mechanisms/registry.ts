/** Every mechanism by the name that bundles have. A new one is its function and a line here. */
import { hadamardResponse } from "./hadamard.js";
import { grr, longGrr, rr } from "./listed.js";
import { bucketFlips, oneBitMean, piecewiseMean, squareWave } from "./numbers.js";
import { pairedParts } from "./pairs.js";
import { projectiveResponse } from "./projective.js";
import { basicRappor, rappor } from "./rappor.js";
import type { Arguments, Mechanism, Randomizer } from "./randomizer.js";
import { countMeanSketch, hadamardSketch, localHashing } from "./sketch.js";
import { subsetSelection } from "./subset.js";
import { prefixTree } from "./tree.js";
import { longUnary, optimizedUnary, symmetricUnary } from "./unary.js";

/** By name. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ...of("categories", {
    rr,
    grr,
    "unary.sue": symmetricUnary,
    "unary.oue": optimizedUnary,
    subset: subsetSelection,
    hadamard: hadamardResponse,
    projective: projectiveResponse,
    "rappor.basic": basicRappor,
    "long.grr": longGrr,
    "long.unary": longUnary,
  }),
  ...of("strings", {
    cms: countMeanSketch,
    hcms: hadamardSketch,
    local_hash: localHashing,
    rappor,
    tree: prefixTree,
  }),
  ...of("numbers", {
    "mean.one_bit": oneBitMean,
    "mean.piecewise": piecewiseMean,
    buckets: bucketFlips,
    wave: squareWave,
  }),
  ...of("parts", { pairs: pairedParts }),
]);

function of(
  values: Mechanism["values"],
  builders: Readonly<Record<string, (given: Arguments) => Randomizer>>,
): [string, Mechanism][] {
  return Object.entries(builders).map(([name, build]) => [name, { version: 1, values, build }]);
}
