/**
 * Caps: the most that all metrics together may say about one person.
 *
 * Of crowds it is kept as Gaussian differential privacy, whose mu squared add up. As
 * client/hubbub/catalog/central_cap.py.
 */
import { number, table } from "./json.js";

/** In nats, by how many days a span has; and room and cost of crowds, as mu squared. */
export interface Caps {
  readonly bySpan: ReadonlyMap<number, number>;
  /** How much all crowds of any 366 days may cost; null: as much as they like. */
  readonly room: number | null;
  /** What one report costs of it, by metric. */
  readonly crowdCosts: ReadonlyMap<string, number>;
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
export async function capsOf(thing: unknown): Promise<Caps> {
  const told = table(thing ?? {});
  if (Object.keys(told).some((field) => !FIELDS.has(field))) throw new TypeError("a cap is new");
  const bySpan = new Map<number, number>();
  for (const [field, days] of SPANS) {
    if (told[field] !== undefined) bySpan.set(days, number(told[field]));
  }
  if (told["central_epsilon_per_year"] === undefined) {
    return { bySpan, room: null, crowdCosts: new Map() };
  }
  // Few catalogs have one.
  const { crowdCapsOf } = await import("../more.js");
  return { bySpan, ...crowdCapsOf(told) };
}
