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
  const hiddenCount = names.length - SHOWN;
  const suffix = hiddenCount > 0 ? ` and ${hiddenCount} more` : "";
  return new ValueOutOfDomain(
    `${error.message}: ${listing.join(", ")}${suffix}${meant(names, value)}`,
  );
};

/** The question whether one of these names was meant; "" where none is alike. */
export function meant(names: readonly string[], name: unknown): string {
  if (typeof name !== "string") return "";
  const letters = lettersOf(name.slice(0, LONGEST));
  let [nearest, maxRatio] = ["", 0];
  for (const other of names) {
    const otherLetters = lettersOf(other);
    const ratio = (2 * common(otherLetters, letters)) / (otherLetters.length + letters.length || 1);
    if (ratio >= ALIKE && ratio > maxRatio) [nearest, maxRatio] = [other, ratio];
  }
  return nearest && `; did you mean "${nearest}"?`;
}

function lettersOf(text: string): string[] {
  return Array.from(text.toLowerCase());
}

/** Letters that two texts share in blocks, the longest first: Ratcliff and Obershelp, as difflib. */
function common(first: readonly string[], second: readonly string[]): number {
  let [start, secondStart, longest] = [0, 0, 0];
  let lengths: readonly number[] = [];
  for (const [index, letter] of first.entries()) {
    const previousLengths = lengths;
    lengths = second.map((other, place) =>
      other === letter ? (previousLengths[place - 1] ?? 0) + 1 : 0,
    );
    for (const [place, length] of lengths.entries()) {
      if (length > longest)
        [start, secondStart, longest] = [index - length + 1, place - length + 1, length];
    }
  }
  if (!longest) return 0;
  return (
    longest +
    common(first.slice(0, start), second.slice(0, secondStart)) +
    common(first.slice(start + longest), second.slice(secondStart + longest))
  );
}
