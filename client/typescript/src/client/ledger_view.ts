/**
 * The ledger as a person sees it: the payloads that left this device, and the remaining budgets.
 */
import { signerOf, type Bundle, type Runs } from "../catalog/bundle.js";
import { samplingOf } from "../catalog/sampling.js";
import type { Metric } from "../catalog/metric.js";
import type { Kem } from "../transport/sealing.js";
import { YEAR_DAYS } from "../catalog/caps.js";
import { DAY_SECONDS, epochAt } from "../catalog/epochs.js";
import { metricNameOf, streamWithin } from "../catalog/tiers.js";
import { isOn } from "./consent.js";
import type { Device } from "./device.js";
import { accountOf, accountsOf } from "./account.js";
import { ownCountsOf } from "./local.js";
import { crowdsSince, reportedOf } from "./ledger.js";
import type { PastReport, StoredReport } from "./storage.js";

/**
 * One metric's budget on this device; all losses are in nats.
 *
 * epsilon: the local loss of one report at this person's tier; 0 if they allow none. reports: the
 * number of reports in the current epoch (or period, if the metric has one), at most
 * `reportsPerEpoch`. spentInEpoch: the loss of those reports. spent: the loss of all reports so
 * far, at most `lifetimeEpsilon`.
 */
export interface MetricView {
  readonly name: string;
  readonly description: string;
  readonly epsilon: number;
  readonly reports: number;
  readonly reportsPerEpoch: number;
  /** The names of the public fields, such as "os", that are sent in the clear beside a report. */
  readonly public: readonly string[];
  readonly spentInEpoch: number;
  readonly spent: number;
  readonly lifetimeEpsilon: number;
  /**
   * The loss to an observer of whole epochs, in nats, except with probability `delta`; null if
   * nothing is promised.
   */
  readonly centralEpsilon: number | null;
  readonly delta: number | null;
  /**
   * The number of consecutive days whose epochs the promise covers together: null for each epoch
   * separately, Infinity for all reports that this device ever makes for a model.
   */
  readonly centralDays: number | null;
  /** The loss of all reports so far to such an observer, in nats; its limit, null for none. */
  readonly central: number;
  readonly lifetimeCentralEpsilon: number | null;
  /** The key encapsulation that seals this metric's reports. */
  readonly kem: Kem;
  /**
   * The probability that this device reports in the current epoch; 0 if the operator has stopped
   * the metric.
   */
  readonly sampling: number;
  /** Whether a notice made that probability smaller than in the app's bundle. */
  readonly lowered: boolean;
}

/**
 * One payload: when it was made (seconds since 1970), its bytes, and its fate: "waiting", "sent" or
 * the reason why not. A filler has no bytes.
 */
export interface PayloadView {
  readonly metric: string;
  readonly epoch: number;
  readonly made: number;
  readonly payload: Uint8Array;
  readonly fate: string;
}

/** The whole ledger of this device; the newest payload comes last. */
export interface LedgerView {
  readonly on: boolean;
  /** Whether this client is in local mode, which sends nothing and counts values here. */
  readonly local: boolean;
  readonly metrics: readonly MetricView[];
  readonly payloads: readonly PayloadView[];
  /** The number of payloads that were given up, by reason, and of faults of the stored state. */
  readonly counts: Readonly<Record<string, number>>;
  /**
   * The counts of local mode, which never leave the device: by metric, how often each value was
   * reported.
   */
  readonly ownCounts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /**
   * The loss of all crowds of the last 366 days to an observer of whole epochs, in nats, and its
   * cap; null if the catalog has no cap.
   */
  readonly crowdsInYear: number | null;
  readonly crowdsCap: number | null;
  /**
   * The parties that run the shuffler and the aggregator, as the operator signed them; null if
   * unknown.
   */
  readonly runs: Runs | null;
  /**
   * The party that gives this account tokens, and so learns that the account requested them; null
   * without tokens.
   */
  readonly issuer: string | null;
  /**
   * The operator's stored notice, and the moment when it ends, in seconds since 1970; null for
   * none.
   */
  readonly notice: { readonly number: number; readonly until: number } | null;
}

/** The ledger, computed from the bundle and the stored state. */
export function view(
  bundle: Bundle,
  device: Device,
  reports: { waiting: readonly StoredReport[]; past: readonly PastReport[] },
  now: number,
  local: boolean,
): LedgerView {
  const waiting = reports.waiting.map((report) => ({ ...report, fate: "waiting" }));
  const { consent } = device;
  const notice = device.notice?.line.includes(signerOf(bundle)) ? device.notice : null;
  const metrics = [...bundle.metrics.values()].map((metric): MetricView => {
    const account = accountOf(accountsOf(device, metric), metric);
    const epoch = epochAt(now, metric.epoch);
    const count = reportedOf(account, metric, epoch);
    const { reportsPerEpoch, lifetimeEpsilon } = metric.limits;
    const { central: promise } = metric;
    const sampling = samplingOf(metric, epoch, notice);
    const stream = streamWithin(
      metric,
      consent.preference ?? Infinity,
      consent.maxLocal ?? Infinity,
    );
    return {
      name: metric.name,
      description: metric.description,
      // PRIVACY: a device reports either to the stream or to the finder, so the larger loss counts.
      epsilon: Math.max(
        stream?.randomizer.privacyLoss ?? 0,
        (stream && metric.finder?.stream.randomizer.privacyLoss) ?? 0,
      ),
      reports: count === Infinity ? reportsPerEpoch : count,
      reportsPerEpoch,
      public: metric.breakdown?.fields ?? [],
      spentInEpoch: inPeriod(metric, epoch).reduce(
        (sum, day) => sum + (account.losses[day] ?? 0),
        0,
      ),
      spent: account.spent,
      lifetimeEpsilon,
      ...{ centralEpsilon: promise?.epsilon ?? null, delta: promise?.delta ?? null },
      centralDays: promise?.days ?? null,
      ...{ central: account.central, lifetimeCentralEpsilon: metric.limits.lifetimeCentralEpsilon },
      ...{ kem: metric.kem, sampling, lowered: sampling < metric.sampling },
    };
  });
  const { crowds } = bundle.caps;
  const today = Math.floor(now / DAY_SECONDS);
  const payloads = [...reports.past, ...waiting].map(
    ({ stream, epoch, made, payload, fate }): PayloadView => {
      return { metric: metricNameOf(stream), epoch, made, payload, fate };
    },
  );
  return {
    ...{ on: isOn(consent.generation), local, metrics, payloads },
    ...ownCountsOf(device.counts),
    ...{ runs: bundle.runs, issuer: bundle.tokens?.issuer ?? null },
    ...{ notice: notice && { number: notice.number, until: notice.until } },
    crowdsInYear: crowds && crowds.epsilonOf(crowdsSince(device.accounts, today - YEAR_DAYS)),
    crowdsCap: crowds && crowds.epsilon,
  };
}

/**
 * The epochs of the period that contains this epoch; the epoch alone if the metric has no period.
 */
function inPeriod({ period }: Metric, epoch: number): number[] {
  if (!period) return [epoch];
  const [firstDay, endDay] = period.days(epoch);
  return Array.from({ length: endDay - firstDay }, (_, index) => firstDay + index);
}
