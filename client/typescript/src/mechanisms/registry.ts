/**
 * Every mechanism by the name that bundles have. A new one is its function and a line here.
 *
 * Those that most apps ask by are at hand; the others are loaded where a bundle names one.
 */
import { grr, rr } from "./listed.js";
import type { Arguments, Mechanism, Randomizer } from "./randomizer.js";

type Build = (given: Arguments) => Randomizer;

const more = () => import("../more.js");

/** By name. */
export const MECHANISMS: ReadonlyMap<string, Mechanism> = new Map([
  ...of("categories", {
    rr: () => rr,
    grr: () => grr,
    "unary.sue": async () => (await more()).symmetricUnary,
    "unary.oue": async () => (await more()).optimizedUnary,
    subset: async () => (await more()).subsetSelection,
    hadamard: async () => (await more()).hadamardResponse,
    projective: async () => (await more()).projectiveResponse,
    "rappor.basic": async () => (await more()).basicRappor,
    "long.grr": async () => (await more()).longGrr,
    "long.hash": async () => (await more()).longHash,
    "long.unary": async () => (await more()).longUnary,
  }),
  ...of("strings", {
    cms: async () => (await more()).countMeanSketch,
    hcms: async () => (await more()).hadamardSketch,
    local_hash: async () => (await more()).localHashing,
    rappor: async () => (await more()).rappor,
    tree: async () => (await more()).prefixTree,
  }),
  ...of("numbers", {
    "mean.one_bit": async () => (await more()).oneBitMean,
    "mean.piecewise": async () => (await more()).piecewiseMean,
    buckets: async () => (await more()).bucketFlips,
    wave: async () => (await more()).squareWave,
  }),
  ...of("sets", { privset: async () => (await more()).privSet }),
  ...of("parts", { pairs: async () => (await more()).pairedParts }),
]);

function of(
  values: Mechanism["values"],
  loaders: Readonly<Record<string, () => Build | Promise<Build>>>,
): [string, Mechanism][] {
  return Object.entries(loaders).map(([name, load]) => {
    const build = async (given: Arguments) => (await load())(given);
    return [name, { version: 1, values, build }];
  });
}
