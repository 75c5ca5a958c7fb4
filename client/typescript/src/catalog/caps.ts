/**
 * Caps: the most that all metrics together may say about one person.
 *
 * Of crowds it is kept as Gaussian differential privacy, whose mu squared add up. As
 * client/hubbub/catalog/central_cap.py.
 */
import { number, table } from "./json.js";
import { load } from "../loading.js";

/** In nats, by how many days a span has; and what crowds may say, null: as much as they like. */
export interface Caps {
  readonly bySpan: ReadonlyMap<number, number>;
  readonly crowds: CrowdCap | null;
}

/** The most that all crowds of any 366 days may say to who sees whole epochs. */
export interface CrowdCap {
  /** In nats. */
  readonly epsilon: number;
  /** The same as mu squared, and what one report costs of it, by metric. */
  readonly room: number;
  readonly costs: ReadonlyMap<string, number>;
  /** What so much of the room says, in nats. */
  epsilonOf(cost: number): number;
}

/** How many days a year has at most. */
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
/** The caps that a bundle's table says. @throws TypeError it says what this version does not know. */
export async function capsOf(value: unknown): Promise<Caps> {
  const cap = table(value ?? {});
  if (Object.keys(cap).some((field) => !FIELDS.has(field))) throw new TypeError("a cap is new");
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
