/** What a developer sees beside a name or value that is not taken: those that are. */

import type { Metric } from "../catalog/metric.js";
import { ValueOutOfDomain } from "../errors.js";

// Fills a few lines of a terminal; the catalog has the rest.
const SHOWN = 12;
// Likeness takes time that grows with the square of the length.
const LONGEST = 100;
const ALIKE = 0.6;

/** The error to throw for a value that a metric does not take. */
export type Hinted = (error: unknown, metric: Metric | undefined, value: unknown) => unknown;

/**
 * With the values that the metric takes, and which of them is written most alike: as value_hint() of
 * client/hubbub/client/value_hints.py.
 *
 * PRIVACY: the likeness nearly tells the value. For who wrote the call; never for a log.
 */
export const hinted: Hinted = (error, metric, value) => {
  const { values, other, model } = metric?.entry ?? {};
  if (!(error instanceof ValueOutOfDomain && Array.isArray(values)) || other === true || model)
    return error;
  const names = values as readonly string[];
  const listing = names.slice(0, SHOWN).map((name) => `"${name}"`);
  const rest = names.length - SHOWN;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return new ValueOutOfDomain(
    `${error.message}: ${listing.join(", ")}${more}${meant(names, value)}`,
  );
};

/** The question whether one of these names was meant; "" where none is alike. */
export function meant(names: readonly string[], name: unknown): string {
  if (typeof name !== "string") return "";
  const letters = lettersOf(name.slice(0, LONGEST));
  let [near, most] = ["", 0];
  for (const other of names) {
    const own = lettersOf(other);
    const ratio = (2 * common(own, letters)) / (own.length + letters.length || 1);
    if (ratio >= ALIKE && ratio > most) [near, most] = [other, ratio];
  }
  return near && `; did you mean "${near}"?`;
}

function lettersOf(text: string): string[] {
  return Array.from(text.toLowerCase());
}

/** Letters that two texts share in blocks, the longest first: Ratcliff and Obershelp, as difflib. */
function common(first: readonly string[], second: readonly string[]): number {
  let [start, other, most] = [0, 0, 0];
  let lengths: readonly number[] = [];
  for (const [at, letter] of first.entries()) {
    const before = lengths;
    lengths = second.map((own, place) => (own === letter ? (before[place - 1] ?? 0) + 1 : 0));
    for (const [place, length] of lengths.entries()) {
      if (length > most) [start, other, most] = [at - length + 1, place - length + 1, length];
    }
  }
  if (!most) return 0;
  return (
    most +
    common(first.slice(0, start), second.slice(0, other)) +
    common(first.slice(start + most), second.slice(other + most))
  );
}
