/**
 * Consent: what the person said, as a number that grows with every yes and no, and how much.
 *
 * The number is even while this device may report. A payload carries the number that it was drawn
 * under, and is never sent under another. As client/hubbub/client/state/consent.py.
 */

/**
 * What the person said so far. preference: the most epsilon that they allow a report, of a metric with
 * a crowd in it; maxLocal: the most of any report to whoever looks; null for any. since: when they had
 * everything forgotten, in seconds since 1970, or 0.
 */
export interface Consent {
  readonly generation: number;
  readonly preference: number | null;
  readonly maxLocal: number | null;
  readonly since: number;
}

/** What holds before anything was said. */
export const UNASKED: Consent = { generation: 0, preference: null, maxLocal: null, since: 0 };

/** Whether the person lets this device report. */
export function isOn(generation: number): boolean {
  return generation % 2 === 0;
}

/** The number once reporting is switched; the same if it was so before. */
export function turned(generation: number, on: boolean): number {
  return generation + Number(on !== isOn(generation));
}

/**
 * What two places that both were told something say together.
 *
 * ordered: one is known to be the later, of one history: then the last word holds. Otherwise nobody
 * knows which was said last, and the more careful one does.
 */
export function agreed(earlier: Consent, later: Consent, ordered: boolean): Consent {
  const generation = Math.max(earlier.generation, later.generation);
  const since = Math.max(earlier.since, later.since);
  if (ordered) return { ...later, generation, since };
  const on = isOn(earlier.generation) && isOn(later.generation);
  return {
    generation: turned(generation, on),
    preference: least(earlier.preference, later.preference),
    maxLocal: least(earlier.maxLocal, later.maxLocal),
    since,
  };
}

function least(one: number | null, other: number | null): number | null {
  const smaller = Math.min(one ?? Infinity, other ?? Infinity);
  return smaller === Infinity ? null : smaller;
}
