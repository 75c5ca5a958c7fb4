/** What a person may see: what left this device, and what is left to spend. */
import type { Bundle } from "../catalog/bundle.js";
import { epochAt } from "../catalog/epochs.js";
import { streamWithin } from "../catalog/metric.js";
import { isOn } from "./consent.js";
import type { Device } from "./device.js";
import { OPENED } from "./ledger.js";
import { opened } from "./state.js";
import type { PastReport, StoredReport } from "./storage.js";

/**
 * One metric's budget on this device; epsilon and spent in nats.
 *
 * epsilon: of one report at this person's tier; 0 if they allow none. reports: in the epoch that runs
 * now, of `reportsPerEpoch`. spent: the most that all reports so far can say, of `lifetimeEpsilon`.
 */
export interface MetricView {
  readonly name: string;
  readonly description: string;
  readonly epsilon: number;
  readonly reports: number;
  readonly reportsPerEpoch: number;
  readonly spentInEpoch: number;
  readonly spent: number;
  readonly lifetimeEpsilon: number;
}

/** One payload: when it was made (seconds since 1970), what it was, and "waiting", "sent" or why not. */
export interface PayloadView {
  readonly metric: string;
  readonly epoch: number;
  readonly made: number;
  readonly payload: Uint8Array;
  readonly fate: string;
}

/** All of it; the newest payload last. */
export interface LedgerView {
  readonly on: boolean;
  readonly metrics: readonly MetricView[];
  readonly payloads: readonly PayloadView[];
  readonly counts: Readonly<Record<string, number>>;
}

/** What the state holds, in the bundle's words. */
export function view(
  bundle: Bundle,
  device: Device,
  reports: { waiting: readonly StoredReport[]; past: readonly PastReport[] },
  now: number,
): LedgerView {
  const waiting = reports.waiting.map((report) => ({ ...report, fate: "waiting" }));
  const { consent } = device;
  const metrics = [...bundle.metrics.values()].map((metric): MetricView => {
    const account = opened(device, metric)[metric.name] ?? OPENED;
    const epoch = epochAt(now, metric.epoch);
    const { reportsPerEpoch, lifetimeEpsilon } = metric.limits;
    const own = streamWithin(metric, consent.preference ?? Infinity, consent.maxLocal ?? Infinity);
    return {
      name: metric.name,
      description: metric.description,
      epsilon: own?.randomizer.privacyLoss ?? 0,
      reports: epoch <= account.floor ? reportsPerEpoch : (account.epochs[epoch] ?? 0),
      reportsPerEpoch,
      spentInEpoch: account.losses[epoch] ?? 0,
      spent: account.spent,
      lifetimeEpsilon,
    };
  });
  const payloads = [...reports.past, ...waiting].map(
    ({ stream, epoch, made, payload, fate }): PayloadView => {
      return { metric: stream.split("/")[0] ?? stream, epoch, made, payload, fate };
    },
  );
  return { on: isOn(consent.generation), metrics, payloads, counts: device.counts };
}
