/**
 * Caps: the most that all metrics together may say about one person.
 *
 * Of crowds it is kept as Gaussian differential privacy, whose mu squared add up: Dong, Roth, Su (JRSS
 * B 2022). As central_cap.py and gaussian.py of client/hubbub/catalog, rounded to the safe side.
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
const DELTA = 1e-8; // where the bundle says none
// Of delta: what Gaussians have; the rest is for what each crowd may tell beyond its own.
const OF_GAUSSIANS = 0.9;
const LEFT_OUT = 1e-13;
const CLOSE = 1e-9;
const ROUNDING = 1e-12;

/** The caps that a bundle's table says. @throws TypeError it says what this version does not know. */
export function capsOf(thing: unknown): Caps {
  const told = table(thing ?? {});
  if (Object.keys(told).some((field) => !FIELDS.has(field))) throw new TypeError("a cap is new");
  const bySpan = new Map<number, number>();
  for (const [field, days] of SPANS) {
    if (told[field] !== undefined) bySpan.set(days, number(told[field]));
  }
  if (told["central_epsilon_per_year"] === undefined) {
    return { bySpan, room: null, crowdCosts: new Map() };
  }
  const delta = number(told["central_delta_per_year"] ?? DELTA);
  const room = muWithin(number(told["central_epsilon_per_year"]), OF_GAUSSIANS * delta) ** 2;
  const least = (room * LEFT_OUT) / ((1 - OF_GAUSSIANS) * delta);
  const crowdCosts = new Map(
    Object.entries(table(told["central_mu"] ?? {})).map(([name, mu]) => {
      return [name, Math.max(number(mu) ** 2, least)];
    }),
  );
  return { bySpan, room, crowdCosts };
}

/** The largest mu that says no more than epsilon at delta, rounded down. */
export function muWithin(epsilon: number, delta: number): number {
  let [low, high] = [0, 1];
  while (deltaOf(high, epsilon) <= delta) [low, high] = [high, 2 * high];
  while (high - low > CLOSE * high) {
    const middle = (low + high) / 2;
    if (deltaOf(middle, epsilon) <= delta) low = middle;
    else high = middle;
  }
  return low;
}

/** The delta of Gaussians mu apart at an epsilon, rounded up. */
function deltaOf(mu: number, epsilon: number): number {
  const [near, far] = [tail(epsilon / mu - mu / 2), tail(epsilon / mu + mu / 2)];
  return near - (far > 0 ? Math.exp(epsilon + Math.log(far)) : 0) + ROUNDING * near;
}

/** The chance of a standard Gaussian above x: by its series, far out by its continued fraction. */
function tail(x: number): number {
  if (x < 0) return 1 - tail(-x);
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  if (x < 3) {
    let [term, sum] = [x, x];
    for (let n = 3; term > sum * 1e-18; n += 2) {
      term *= (x * x) / n;
      sum += term;
    }
    return 0.5 - density * sum;
  }
  let below = x;
  for (let n = 200; n >= 1; n -= 1) below = x + n / below;
  return density / below;
}
