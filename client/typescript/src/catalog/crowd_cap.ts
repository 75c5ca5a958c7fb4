/** The cap on what all crowds of a year may say, as client/hubbub/catalog/central_cap.py has it. */
import type { CrowdCap } from "./caps.js";
import { epsilonOf, muWithin } from "./gaussian.js";
import { number, table, type Table } from "./json.js";

const DELTA = 1e-8; // where the bundle says none
// Of delta: what Gaussians have; the rest is for what each crowd may tell beyond its own.
const OF_GAUSSIANS = 0.9;
const LEFT_OUT = 1e-13;

/** What a bundle's table with such a cap says. */
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
