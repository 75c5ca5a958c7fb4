/** What a person may see: what left this device, and what is left to spend. */
import { signerOf, type Bundle, type Runs } from "../catalog/bundle.js";
import { samplingOf } from "../catalog/sampling.js";
import type { Metric } from "../catalog/metric.js";
import type { Kem } from "../transport/sealing.js";
import { YEAR_DAYS } from "../catalog/caps.js";
import { DAY_SECONDS, epochAt } from "../catalog/epochs.js";
import { metricNameOf, streamWithin } from "../catalog/tiers.js";
import { isOn } from "./consent.js";
import type { Device } from "./device.js";
import { accountOf, opened } from "./account.js";
import { ownCountsOf } from "./local.js";
import { crowdsSince, reportedOf } from "./ledger.js";
import type { PastReport, StoredReport } from "./storage.js";

/**
 * One metric's budget on this device; epsilon and spent in nats.
 *
 * epsilon: of one report at this person's tier; 0 if they allow none. reports: in the epoch that runs
 * now, or the period where it asks once in one, of `reportsPerEpoch`. spentInEpoch: by those. spent: the most that all reports so far can say, of `lifetimeEpsilon`.
 */
export interface MetricView {
  readonly name: string;
  readonly description: string;
  readonly epsilon: number;
  readonly reports: number;
  readonly reportsPerEpoch: number;
  /** What of this device is told in the clear beside a report, as its OS: the fields' names. */
  readonly public: readonly string[];
  readonly spentInEpoch: number;
  readonly spent: number;
  readonly lifetimeEpsilon: number;
  /** The promise to who sees whole epochs alone, and its delta; null where there is none. */
  readonly centralEpsilon: number | null;
  readonly delta: number | null;
  /**
   * For how many days in a row that is, all their epochs together; null for each epoch alone, Infinity
   * for all that this device ever says of a model.
   */
  readonly centralDays: number | null;
  /** The most that all reports so far can say to those, of what they may; null for no limit. */
  readonly central: number;
  readonly lifetimeCentralEpsilon: number | null;
  /** What its reports are sealed with. */
  readonly kem: Kem;
  /** The chance to take part in the epoch that runs now, 0 where the operator has stopped it. */
  readonly sampling: number;
  /** Whether that is less than the app was made with. */
  readonly lowered: boolean;
}

/**
 * One payload: when it was made (seconds since 1970), what it was, and "waiting", "sent" or why not. It
 * is empty of a filler, which says nothing.
 */
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
  /** Whether this client is in local mode, which sends nothing and counts values here. */
  readonly local: boolean;
  readonly metrics: readonly MetricView[];
  readonly payloads: readonly PayloadView[];
  /** Payloads given up by reason, and what befell the state itself. */
  readonly counts: Readonly<Record<string, number>>;
  /** What local mode counted, which was never sent: by metric, how often each value was reported. */
  readonly ownCounts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /**
   * The most that all crowds of the last 366 days can say to who sees whole epochs alone, in nats, of
   * `crowdsCap` that may be; null where the catalog has no cap on it.
   */
  readonly crowdsInYear: number | null;
  readonly crowdsCap: number | null;
  /** Who runs the shuffler and the aggregator, as the operator signed it; null where it does not say. */
  readonly runs: Runs | null;
  /** Who gives this account tokens, and sees that it asked; null where reports go without. */
  readonly issuer: string | null;
  /** The operator's notice that is kept here, and until when it holds, in seconds since 1970. */
  readonly notice: { readonly number: number; readonly until: number } | null;
}

/** What the state holds, in the bundle's words. */
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
    const account = accountOf(opened(device, metric), metric);
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
      // PRIVACY: a device tells one of both.
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

/** The epoch, or the days of its period where it asks once in one. */
function inPeriod({ period }: Metric, epoch: number): number[] {
  if (!period) return [epoch];
  const [first, end] = period.days(epoch);
  return Array.from({ length: end - first }, (_, index) => first + index);
}
