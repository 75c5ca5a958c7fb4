/**
 * Cover: the epochs for which a device still has to report the default, and the fillers of catalogs
 * with `cover`. As client/hubbub/client/epochs_to_cover.py; loaded only if a metric has a default.
 */
import type { Metric } from "../catalog/metric.js";
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import { streamWithin } from "../catalog/tiers.js";
import { accountOf, accountsOf, type Account } from "./account.js";
import type { Device } from "./device.js";
import { withBoundedEpochs } from "./ledger.js";
import type { Outcome } from "./outcome.js";
import { keeping, reportPast } from "./past_events.js";
import type { Reporter } from "./reporter.js";

// The bundle and the notices are public, so all other epochs, in which no device sends anything,
// are known anyway.
const OF_THE_DEVICE: ReadonlySet<Outcome> = new Set([
  ...(["already_reported", "declined", "not_its_day", "not_sampled", "over_budget"] as const),
]);

/**
 * The change of the document that records that the device ran in new epochs, and which events
 * happened; null if there is nothing new.
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
      accounts = accountsOf({ ...device, accounts }, metric);
      const account = accountOf(accounts, metric);
      const epochs = { ...account.epochs, [epochAt(now, metric.epoch)]: 0 };
      accounts = { ...accounts, [metric.name]: withBoundedEpochs({ ...account, epochs }) };
    }
    return { ...device, accounts };
  };
}

/**
 * Makes the reports of past epochs: defaults where the device ran, and values computed from events.
 */
export function cover(reporter: Reporter): void {
  for (const metric of covered(reporter)) {
    for (const epoch of unanswered(
      accountOf(accountsOf(reporter.device, metric), metric),
      metric,
      reporter.now(),
    )) {
      const outcome = reporter.say(metric, metric.default ?? 0, "", epoch);
      if (OF_THE_DEVICE.has(outcome) && fills(reporter)) reporter.fill(metric, epoch);
    }
  }
  reportPast(reporter);
}

/** The seconds until the next end of an epoch that may need a report. */
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

/** Whether fillers are sent; none in development, which protects nobody. */
function fills({ bundle }: Reporter): boolean {
  return bundle.cover && !bundle.development;
}

/** The metrics with a default that this person lets report. */
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
  const account = accountOf(accountsOf(device, metric), metric);
  const epoch = epochAt(now, metric.epoch);
  return epoch > account.floor && account.epochs[epoch] === undefined;
}

/**
 * When the reports of an epoch stop counting: the aggregator accepts them for one more grace
 * period.
 */
function closingTime(epoch: number, length: string): number {
  return epochStart(epoch + 1, length) + 2 * graceSeconds(length);
}

/** Finished epochs in which the device ran without a report and that are not too late. */
function unanswered(account: Account, metric: Metric, now: number): number[] {
  return Object.entries(account.epochs)
    .filter(([epoch, reports]) => !reports && !account.filled[epoch])
    .map(([epoch]) => Number(epoch))
    .filter((epoch) => epoch < epochAt(now, metric.epoch) && now < closingTime(epoch, metric.epoch))
    .sort((first, second) => first - second);
}
