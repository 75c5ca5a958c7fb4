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
export function turned(generation: number, isEnabled: boolean): number {
  return generation + Number(isEnabled !== isOn(generation));
}
