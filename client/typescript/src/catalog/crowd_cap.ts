/** The cap on a year's loss in all crowds, as client/hubbub/catalog/crowds/gaussian_privacy.py. */
import type { CrowdCap } from "./caps.js";
import { epsilonOf, muWithin } from "./gaussian_privacy.js";
import { number, table, type Table } from "./json.js";

const DELTA = 1e-8; // if the bundle has no value
// The share of delta for the Gaussians; the rest is for the probability that a crowd's promise
// fails.
const OF_GAUSSIANS = 0.9;
const LEFT_OUT = 1e-13;

/** Reads a bundle's table with such a cap. */
export function crowdCapOf(cap: Table): CrowdCap {
  const epsilon = number(cap["central_epsilon_per_year"]);
  const delta = number(cap["central_delta_per_year"] ?? DELTA);
  const room = muWithin(epsilon, OF_GAUSSIANS * delta) ** 2;
  const minReports = (room * LEFT_OUT) / ((1 - OF_GAUSSIANS) * delta);
  const costs = new Map(
    Object.entries(table(cap["central_mu"] ?? {})).map(([name, mu]) => {
      return [name, Math.max(number(mu) ** 2, minReports)];
    }),
  );
  const epsilonSpent = (cost: number) =>
    cost ? epsilonOf(Math.sqrt(cost), OF_GAUSSIANS * delta) : 0;
  return { epsilon, room, costs, epsilonOf: epsilonSpent };
}
