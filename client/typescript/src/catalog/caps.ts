/**
 * Caps: how much all metrics together may reveal about one person.
 *
 * The loss to observers of crowds is counted as Gaussian differential privacy, where the squares of
 * mu add up. As client/hubbub/catalog/crowds/gaussian_privacy.py.
 */
import { number, table } from "./json.js";
import { load } from "../loading.js";

/** Caps in nats by the number of days of their span, and the cap for crowds; null for no cap. */
export interface Caps {
  readonly bySpan: ReadonlyMap<number, number>;
  readonly crowds: CrowdCap | null;
}

/** The maximum loss of all crowds of any 366 days, to an observer of whole epochs. */
export interface CrowdCap {
  /** In nats. */
  readonly epsilon: number;
  /** The cap as mu squared, and the cost of one report in mu squared, by metric. */
  readonly room: number;
  readonly costs: ReadonlyMap<string, number>;
  /** Converts a used amount (mu squared) to nats. */
  epsilonOf(cost: number): number;
}

/** The maximum number of days of a year. */
export const YEAR_DAYS = 366;

const SPANS: readonly (readonly [string, number])[] = [
  ["epsilon_per_day", 1],
  ["epsilon_per_month", 31],
  ["epsilon_per_year", YEAR_DAYS],
];
const FIELDS = new Set([
  ...SPANS.map(([field]) => field),
  ...["central_epsilon_per_year", "central_delta_per_year", "central_mu"],
]);
/**
 * The caps in a bundle's table. @throws TypeError the table has fields that this version does not
 * know.
 */
export async function capsOf(value: unknown): Promise<Caps> {
  const cap = table(value ?? {});
  if (Object.keys(cap).some((field) => !FIELDS.has(field)))
    throw new TypeError("a cap has an unknown field");
  const bySpan = new Map<number, number>();
  for (const [field, days] of SPANS) {
    if ((cap[field] ?? null) !== null) bySpan.set(days, number(cap[field]));
  }
  if ((cap["central_epsilon_per_year"] ?? null) === null) {
    return { bySpan, crowds: null };
  }
  // Few catalogs have one.
  const { crowdCapOf } = await load("more");
  return { bySpan, crowds: crowdCapOf(cap) };
}
