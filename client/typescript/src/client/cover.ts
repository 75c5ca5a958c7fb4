/**
 * Cover: which epochs a device has yet to say the default of, and the fillers of catalogs that say
 * `cover`. As client/hubbub/client/cover.py; loaded where a metric has a default.
 */
import type { Metric } from "../catalog/metric.js";
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import { streamWithin } from "../catalog/tiers.js";
import { accountOf, opened, type Account } from "./account.js";
import type { Device } from "./device.js";
import { withBoundedEpochs } from "./ledger.js";
import type { Outcome } from "./outcome.js";
import { keeping, reportPast } from "./past.js";
import type { Reporter } from "./reporter.js";

// Whoever has the bundle, and hears the notices, knows the others: then no device sends anything.
const OF_THE_DEVICE: ReadonlySet<Outcome> = new Set([
  ...(["already_reported", "declined", "not_its_day", "not_sampled", "over_budget"] as const),
]);

/**
 * What keeps that the device runs in epochs of which nothing is known, and which events happened; null
 * if there is nothing to keep.
 */
export function running(reporter: Reporter): ((device: Device) => Device) | null {
  const changes = [coverChanges(reporter), keeping(reporter)].filter((change) => change !== null);
  if (!changes.length) return null;
  return (device) => changes.reduce((result, change) => change(result), device);
}

function coverChanges(reporter: Reporter): ((device: Device) => Device) | null {
  const now = reporter.now();
  const untouched = covered(reporter).filter((metric) => isUntouched(reporter.device, metric, now));
  if (!untouched.length) return null;
  return (device) => {
    let { accounts } = device;
    for (const metric of untouched) {
      if (!isUntouched({ ...device, accounts }, metric, now)) continue;
      accounts = opened({ ...device, accounts }, metric);
      const account = accountOf(accounts, metric);
      const epochs = { ...account.epochs, [epochAt(now, metric.epoch)]: 0 };
      accounts = { ...accounts, [metric.name]: withBoundedEpochs({ ...account, epochs }) };
    }
    return { ...device, accounts };
  };
}

/** Reports of past epochs: defaults where the device ran, and what follows from events. */
export function cover(reporter: Reporter): void {
  for (const metric of covered(reporter)) {
    for (const epoch of unanswered(
      accountOf(opened(reporter.device, metric), metric),
      metric,
      reporter.now(),
    )) {
      const outcome = reporter.say(metric, metric.default ?? 0, "", epoch);
      if (OF_THE_DEVICE.has(outcome) && fills(reporter)) reporter.fill(metric, epoch);
    }
  }
  reportPast(reporter);
}

/** How long until the next epoch is over that there may be a report of then, in seconds. */
export function secondsToNext(reporter: Reporter): number {
  const now = reporter.now();
  const lengths = [...reporter.bundle.metrics.values()]
    .filter((metric) => hasDefault(metric) || metric.past?.counts)
    .map((metric) => metric.epoch);
  return Math.min(
    ...lengths.map((length) => epochStart(epochAt(now, length) + 1, length) - now),
    Infinity,
  );
}

/** Whether fillers go; none in development, where nobody hides. */
function fills({ bundle }: Reporter): boolean {
  return bundle.cover && !bundle.development;
}

/** Those that this person lets report, and that have a default. */
function covered(reporter: Reporter): Metric[] {
  if (!reporter.isOn) return [];
  return [...reporter.bundle.metrics.values()].filter(
    (metric) =>
      hasDefault(metric) &&
      (fills(reporter) || streamWithin(metric, ...reporter.allowed) !== undefined),
  );
}

function hasDefault(metric: Metric): boolean {
  return metric.default !== null;
}

function isUntouched(device: Device, metric: Metric, now: number): boolean {
  const account = accountOf(opened(device, metric), metric);
  const epoch = epochAt(now, metric.epoch);
  return epoch > account.floor && account.epochs[epoch] === undefined;
}

/** When nothing of an epoch is counted any more: the aggregator takes it for one more grace. */
function closingTime(epoch: number, length: string): number {
  return epochStart(epoch + 1, length) + 2 * graceSeconds(length);
}

/** The epochs in which the device ran, that are over and not too late, without a report. */
function unanswered(account: Account, metric: Metric, now: number): number[] {
  return Object.entries(account.epochs)
    .filter(([epoch, reports]) => !reports && !account.filled[epoch])
    .map(([epoch]) => Number(epoch))
    .filter((epoch) => epoch < epochAt(now, metric.epoch) && now < closingTime(epoch, metric.epoch))
    .sort((first, second) => first - second);
}
