/** The chance that a device takes part in an epoch: the bundle's, or less by an operator's notice. */
import { epochStart } from "./epochs.js";
import { own } from "./json.js";
import type { Metric } from "./metric.js";

/**
 * What an operator asks less while its apps are out, as the device keeps it once it was checked.
 *
 * number: grows from notice to notice of one key. until: epochs that begin then or later are asked as
 * the bundle says. line: the operator's keys in base64, oldest first; the last one signed it. steps: by
 * metric, from which moment which chance holds, ascending; 0 stops it. Moments are in seconds since
 * 1970-01-01 UTC.
 */
export interface Notice {
  readonly number: number;
  readonly until: number;
  readonly line: readonly string[];
  readonly steps: Readonly<Record<string, readonly Step[]>>;
}

/** From which moment, and the chance to take part from then on. */
export type Step = readonly [since: number, chance: number];

/**
 * The chance; 0 for none.
 *
 * An epoch has one from its beginning to its end, whichever moment a device hears of it: what changes
 * while it runs holds from the next one on. A stop alone holds at once.
 */
export function samplingOf(metric: Metric, epoch: number, notice: Notice | null): number {
  const start = epochStart(epoch, metric.epoch);
  const { sampling } = metric;
  if (!notice || start >= notice.until) return sampling;
  let chance = sampling;
  for (const [since, step] of own(notice.steps, metric.name) ?? []) {
    if (!step && since >= start) return 0;
    if (since <= start) chance = Math.min(sampling, step);
  }
  return chance;
}
