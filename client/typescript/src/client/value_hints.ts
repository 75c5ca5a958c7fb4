/** Hints for developers about an unknown name or value: the known ones. */

import type { Metric } from "../catalog/metric.js";
import { NotListed, UnknownMetric, ValueOutOfDomain } from "../errors.js";
import { readable } from "./background.js";
import type { Diagnostics } from "./diagnostics.js";
import type { Outcome } from "./outcome.js";

// This many names fill a few lines of a terminal; the catalog lists the rest.
const MAX_SHOWN = 12;
// The comparison takes time quadratic in the length.
const LONGEST = 100;

/**
 * The outcome of a call that threw, after a warning for each metric. @throws the error, with a hint,
 * if strict.
 */
export function mistakeOf(
  thrown: unknown,
  { call, metric, value }: { call: string; metric: string; value: unknown },
  metrics: ReadonlyMap<string, Metric>,
  isStrict: boolean,
  diagnostics: Diagnostics,
): Outcome {
  const error = thrown instanceof UnknownMetric ? withNames(thrown, metrics) : thrown;
  const mistake =
    error instanceof UnknownMetric
      ? "unknown_metric"
      : error instanceof ValueOutOfDomain
        ? "not_a_value"
        : "failed";
  if (isStrict) {
    diagnostics.count(mistake);
    throw hinted(error, metrics, metric, value);
  }
  const metricName = metrics.has(metric) ? metric : "";
  diagnostics.warnOnce(`${mistake} ${metricName}`, `${call} is used wrongly: ${readable(error)}`);
  return mistake;
}

/**
 * Adds the most similar metric, or the metric's values and the most similar one, as value_hint()
 * of client/hubbub/client/mistakes_and_counters.py.
 *
 * PRIVACY: the most similar name nearly reveals the value. Only for the developer of the call,
 * never for a log.
 */
function hinted(
  error: unknown,
  metrics: ReadonlyMap<string, Metric>,
  name: string,
  value: unknown,
): unknown {
  if (error instanceof UnknownMetric)
    return new UnknownMetric(`${error.message}${meant([...metrics.keys()], name)}`);
  const values = metrics.get(name)?.entry["values"];
  // The other errors are about a number or a part, of which the list would look like the cause.
  if (!(error instanceof NotListed) || !Array.isArray(values)) return error;
  const names = values as readonly string[];
  if ([...names].sort().join() === "false,true")
    return new NotListed(`${error.message}: true and false, also as texts`);
  const listing = names.slice(0, MAX_SHOWN).map((name) => `"${name}"`);
  const hiddenCount = names.length - MAX_SHOWN;
  const suffix = hiddenCount > 0 ? ` and ${hiddenCount} more` : "";
  return new NotListed(`${error.message}: ${listing.join(", ")}${suffix}${meant(names, value)}`);
}

/** An error about a name that the bundle lacks, with the names that it has of that kind. */
function withNames(error: UnknownMetric, metrics: ReadonlyMap<string, Metric>): UnknownMetric {
  if (!error.missing) return error;
  const isMetric = error.missing === "metric";
  const alike = [...metrics].filter(([, { model }]) => !model === isMetric);
  const names = alike.map(([name]) => name).join(", ") || "none";
  return new UnknownMetric(
    `${error.message}; it has ${names}; pass the name first, then the value`,
  );
}

/**
 * The question whether a similar name was meant; "" if no name is near: it may differ by one letter
 * in three, left out, added, replaced, or two swapped, in any case.
 */
export function meant(names: readonly string[], name: unknown): string {
  if (typeof name !== "string") return "";
  const letters = lettersOf(Array.from(name).slice(0, LONGEST).join(""));
  let [nearest, maxEdits] = ["", Math.floor(letters.length / 3)];
  for (const candidate of names) {
    const otherLetters = lettersOf(candidate);
    if (Math.abs(otherLetters.length - letters.length) > maxEdits) continue;
    const edits = editsBetween(letters, otherLetters);
    if (edits <= maxEdits) [nearest, maxEdits] = [candidate, edits - 1];
  }
  return nearest && `; did you mean "${nearest}"?`;
}

function lettersOf(text: string): string[] {
  return Array.from(text.toLowerCase());
}

/** The number of edits between two texts, by optimal string alignment. */
function editsBetween(letters: readonly string[], otherLetters: readonly string[]): number {
  let before: readonly number[] = [];
  let row: readonly number[] = [0, ...otherLetters.map((_, at) => at + 1)];
  for (const [place, letter] of letters.entries()) {
    const nextRow = [place + 1];
    for (const [at, otherLetter] of otherLetters.entries()) {
      const changed = (row[at] ?? 0) + (letter === otherLetter ? 0 : 1);
      const swapped =
        at > 0 && letter === otherLetters[at - 1] && letters[place - 1] === otherLetter
          ? (before[at - 1] ?? 0) + 1
          : Infinity;
      nextRow.push(Math.min(changed, (row[at + 1] ?? 0) + 1, (nextRow[at] ?? 0) + 1, swapped));
    }
    [before, row] = [row, nextRow];
  }
  return row.at(-1) ?? 0;
}
