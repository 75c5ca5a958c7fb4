/** Hints for developers about an unknown name or value: the known ones. */

import type { Metric } from "../catalog/metric.js";
import { UnknownMetric, ValueOutOfDomain } from "../errors.js";

// This many names fill a few lines of a terminal; the catalog lists the rest.
const SHOWN = 12;
// The comparison takes time quadratic in the length.
const LONGEST = 100;
const ALIKE = 0.6;

/** Adds a hint to the error about an unknown metric, or a value that a metric does not have. */
export type Hinted = (
  error: unknown,
  metrics: ReadonlyMap<string, Metric>,
  name: string,
  value: unknown,
) => unknown;

/**
 * Adds the most similar metric, or the metric's values and the most similar one, as value_hint()
 * of client/hubbub/client/value_hints.py.
 *
 * PRIVACY: the most similar name nearly reveals the value. Only for the developer of the call,
 * never for a log.
 */
export const hinted: Hinted = (error, metrics, name, value) => {
  if (error instanceof UnknownMetric)
    return new UnknownMetric(`${error.message}${meant([...metrics.keys()], name)}`);
  const { values, other, model } = metrics.get(name)?.entry ?? {};
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

/** The question whether a similar name was meant; "" if no name is similar. */
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

/**
 * The number of letters in common blocks of two texts, by Ratcliff and Obershelp, as in difflib.
 */
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
