/**
 * The probability that a device takes part in an epoch: the bundle's, or a lower one of an
 * operator's notice.
 */
import { epochStart } from "./epochs.js";
import { ownValue } from "./json.js";
import type { Metric } from "./metric.js";

/**
 * A verified notice as the device stores it: the operator's lower probabilities for apps that are
 * already published.
 *
 * number: grows from notice to notice of one key. until: from epochs that begin at this moment on,
 * the bundle's probabilities apply again. line: the operator's keys in base64, oldest first; the
 * last one signed it. steps: for each metric, moments in ascending order with the probability from
 * then on; 0 stops the metric. Moments are in seconds since 1970-01-01 UTC.
 */
export interface Notice {
  readonly number: number;
  readonly until: number;
  readonly line: readonly string[];
  readonly steps: Readonly<Record<string, readonly Step[]>>;
}

/** A moment, and the probability to take part from then on. */
export type Step = readonly [since: number, chance: number];

/**
 * The probability; 0 if the metric is stopped.
 *
 * An epoch has one probability from beginning to end: a change during an epoch applies from the
 * next epoch on, whenever a device receives the notice. Only a stop applies at once.
 */
export function samplingOf(metric: Metric, epoch: number, notice: Notice | null): number {
  const start = epochStart(epoch, metric.epoch);
  const { sampling } = metric;
  if (!notice || start >= notice.until) return sampling;
  let chance = sampling;
  for (const [since, step] of ownValue(notice.steps, metric.name) ?? []) {
    if (!step && since >= start) return 0;
    if (since <= start) chance = Math.min(sampling, step);
  }
  return chance;
}
