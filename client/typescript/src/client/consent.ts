/**
 * Consent: a number that grows with every opt-in and opt-out, and the limits that the person set.
 *
 * The number is even while this device may report. A payload carries the number under which it was
 * drawn, and is never sent under another number. As client/hubbub/client/state/consent.py.
 */

/**
 * The person's choices. preference: the maximum epsilon of a report (central epsilon for a metric
 * with a crowd); maxLocal: the maximum local epsilon; null for no limit. since: when they had
 * everything forgotten, in seconds since 1970, or 0.
 */
export interface Consent {
  readonly generation: number;
  readonly preference: number | null;
  readonly maxLocal: number | null;
  readonly since: number;
}

/** The consent before any choice. */
export const UNASKED: Consent = { generation: 0, preference: null, maxLocal: null, since: 0 };

/** Whether the person lets this device report. */
export function isOn(generation: number): boolean {
  return generation % 2 === 0;
}

/** The number after switching reporting; unchanged if the setting is the same. */
export function turned(generation: number, isEnabled: boolean): number {
  return generation + Number(isEnabled !== isOn(generation));
}
