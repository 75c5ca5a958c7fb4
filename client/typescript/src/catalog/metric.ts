/** Metrics: the questions of a bundle, and each question's streams with their randomizers. */
import { UnknownMetric } from "../errors.js";
import { load } from "../loading.js";
import { mechanismOf } from "../mechanisms/preloaded.js";
import type { BitSource } from "../mechanisms/random_bits.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Coded, Memo, Randomizer } from "../mechanisms/randomizer.js";
import type { Kem } from "../transport/sealing.js";
import type { Dummies } from "./dummies.js";
import { listed, number, table, text, type Table } from "./json.js";
import type { Notice } from "./sampling.js";
import { listedPlace, withSubject } from "./values.js";

/**
 * A stream: a metric at one epsilon, with separate totals for the current list of values: "theme",
 * "theme/0.5", or "theme/v4/0.5" after values were appended. epsilon: in nats. tier: "" for the
 * metric itself.
 */
export interface Stream {
  readonly name: string;
  readonly tier: string;
  readonly epsilon: number;
  readonly randomizer: Randomizer;
}

/**
 * How much one device may reveal about a metric, in nats. central: to an observer of whole epochs.
 */
export interface Limits {
  readonly reportsPerEpoch: number;
  readonly lifetimeEpsilon: number;
  readonly lifetimeCentralEpsilon: number | null;
}

/**
 * The loss of all reports of an epoch about a person, to an observer of the shuffled epoch.
 * epsilon: in nats. days: how many consecutive days epsilon covers, all their epochs together; null
 * for each epoch alone, Infinity for all reports ever.
 */
export interface CentralPromise {
  readonly epsilon: number;
  readonly delta: number;
  readonly days: number | null;
}

/**
 * When a device is asked, for metrics that ask each device on one day of a period. Days are
 * numbered from 1970.
 */
export interface Period {
  /** The period that contains a day: its first day, and the first day after it. */
  days(day: number): readonly [first: number, after: number];
  /** Whether the device is asked on this day. memo: the metric's, for all tiers. */
  isOwn(day: number, memo: Memo): boolean;
}

/** What a metric asks the devices that look for unlisted strings. */
export interface Finder {
  readonly stream: Stream;
  /**
   * Whether this device looks for strings in an epoch, or in the period that begins with it. memo:
   * the metric's.
   */
  looks(firstEpoch: number, memo: Memo): boolean;
  /**
   * The text of a value that the metric has accepted.
   *
   * @throws ValueOutOfDomain no tree accepts the text, whether or not this device looks for
   * strings.
   */
  spoken(value: unknown): string;
}

/** One example for a model, with columns in [0, 1]. clipped: the number of clipped values. */
export interface Example {
  readonly columns: readonly number[];
  readonly label: number;
  readonly clipped: number;
}

/**
 * The state of a model after some rounds. number: the last included round. edges: the bins of
 * scores, for devices that evaluate the model.
 */
export interface ModelState {
  readonly number: number;
  readonly centre: readonly number[];
  readonly weights: readonly number[];
  readonly edges: readonly number[];
}

/** Draws the coins of a report. Called only after the report was charged. */
export type Tell = (coins: BitSource) => Bytes;

/**
 * How a model's reports are made. judgingLoss: the loss of an evaluating device's report, in nats.
 */
export interface Model {
  readonly columns: number;
  readonly weights: number;
  readonly judgingLoss: number;
  /** The round of an epoch, if the device takes part in it, else null. memo: the metric's. */
  round(epoch: number, memo: Memo): number | null;
  /** @throws ValueOutOfDomain these are not its features or label; the message never shows them. */
  example(features: unknown, label: unknown): Example;
  /** The function that makes this round's report; null if the needed state is missing. */
  teller(round: number, example: Example, state: ModelState | null): Tell | null;
}

/**
 * A kind whose value a device computes from its own past, once an epoch. counts: true if the value
 * depends on how often each event happened and is computed after the epoch; false if it is computed
 * at the first event, from the epochs that were reported.
 */
export interface Past {
  readonly counts: boolean;
  /**
   * The event that the app reports. @throws ValueOutOfDomain it is not an event of the metric; the
   * message never shows it.
   */
  event(value: unknown): string;
  /** events: how often each event happened; reported: the other epochs with a report. */
  computed(
    epoch: number,
    events: Readonly<Record<string, number>>,
    reported: readonly number[],
  ): Coded;
}

/**
 * Public values of a device, such as its OS, sent in the clear; or functions that return them at
 * every report.
 */
export type Public = Readonly<Record<string, string | (() => string)>>;

/** The public fields of devices by which answers are split. */
export interface Breakdown {
  readonly fields: readonly string[];
  /** The suffix of a stream's name: "@os=linux", or "" if a value is not listed. */
  cell(publicValues: Public): string;
  /** All suffixes. */
  readonly cells: readonly string[];
}

/**
 * An experiment: devices draw arms, and metrics measure the arms separately. definition: its arms
 * with their weights. Moments are in seconds since 1970.
 */
export interface Experiment {
  readonly name: string;
  readonly definition: string;
  /** The arms that devices still get. */
  live(notice: Notice | null, now: number): readonly string[];
  /** Whether the operator has ended an arm; then no device reports in it. */
  isOver(notice: Notice | null, now: number): boolean;
  /** A device's arm. memo: the experiment's. */
  drawn(memo: Memo): string;
}

/** One question that an app may answer. */
export interface Metric {
  readonly name: string;
  /** The metric's entry in the bundle. */
  readonly entry: Table;
  readonly description: string;
  readonly epoch: string;
  /** The second after its last day. */
  readonly expires: number;
  readonly sampling: number;
  readonly kem: Kem;
  readonly period: Period | null;
  readonly breakdown: Breakdown | null;
  readonly experiment: Experiment | null;
  readonly finder: Finder | null;
  readonly model: Model | null;
  /** How a device computes its value; null where the app reports it. */
  readonly past: Past | null;
  /** The dummies that a device sends with a report; null for none, as in development. */
  readonly dummies: Dummies | null;
  /**
   * The value that a device reports if it ran in an epoch and the app reported nothing; null for
   * none.
   */
  readonly default: Coded | null;
  readonly limits: Limits;
  /** The promise to an observer of whole epochs; null if there is none, as in development. */
  readonly central: CentralPromise | null;
  /** The main stream, then those of the tiers, the smallest epsilon first. */
  readonly streams: readonly [Stream, ...Stream[]];
  /** SHA-256 of the definition, in hex, for each list of values, by its stream. */
  readonly digests: ReadonlyMap<string, string>;
  /** @throws ValueOutOfDomain it is not one of its values; the message never shows it. */
  code(value: unknown): Coded;
}

// Fields that only a few metrics use.
const RARE_FIELDS = [
  ...["period", "report_on", "breakdown", "dummies_each", "discover", "central_period"],
  "experiment",
];
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...["mechanism", "version", "epsilon", "parameters", "values", "epoch"],
  ...["kind", "edges", "outside", "other", "ranges", "rate", "central_epsilon", "crowd", "delta"],
  ...["honest", "dummies", "max_local_epsilon", "rolling", "kem", "beginnings", "default"],
  ...[
    "count_epsilon",
    "dummies_scale",
    "dummies_shift",
    "dummies_sum_scale",
    "model",
    ...RARE_FIELDS,
  ],
  ...["description", "owner", "expires", "min_batch", "unit", "tiers", "sampling", "grown"],
  ...["reports_per_epoch", "lifetime_epsilon", "lifetime_central_epsilon"],
  // Fields without effect on a device: how the mechanism was chosen, how numbers are published,
  // what the operator stores.
  ...["choice", "release", "candidates", "alert", "keep", "supersedes"],
]);
/** Kinds of values that are numbers. */
export const NUMERIC: ReadonlySet<unknown> = new Set(["count", "number", "duration", "size"]);
// Kinds whose value a device computes from its past.
const PAST = /^(funnel|rate|activity|retention)$/;
const DELTA = 1e-8; // if the promise names no span
const DAY_MS = 86_400_000;

/**
 * The metric of a bundle's entry. development: whether the installation protects nobody.
 * pythonEntry: the entry with numbers in Python's spelling, where 6.0 differs from 6.
 *
 * @throws UnknownMetric this version cannot report the metric.
 */
export async function metricFrom(
  name: string,
  entry: Table,
  development: boolean,
  pythonEntry = entry,
): Promise<Metric> {
  const unknownField = Object.keys(entry).find((field) => !KNOWN_FIELDS.has(field));
  if (unknownField !== undefined)
    throw new UnknownMetric(
      `metric "${name}" has ${unknownField}: upgrade hubbub, or leave it out`,
    );
  const { digestsOf, refuseLargeBatch, refuseMetric, refuseNoise } = await load("checks");
  refuseMetric(name, entry, pythonEntry);
  await refuseKind(name, entry);
  const model = entry["model"] !== undefined ? (await load("vectors")).modelOf(name, entry) : null;
  const streams = await streamsOf(name, entry, model?.judgingLoss);
  const kem = kemOf(name, entry["kem"] === undefined ? "x25519" : entry["kem"]);
  refuseLargeBatch(entry, streams[0].randomizer.payloadBytes, kem);
  refuseNoise(entry, streams[0].randomizer);
  if (entry["crowd"] !== undefined && streams[0].randomizer.isUneven)
    throw new UnknownMetric(`metric "${name}" has a crowd without proof`);
  if (entry["default"] !== undefined && Number.isFinite(streams[0].randomizer.permanentLoss))
    throw new UnknownMetric(`metric "${name}" has a permanent answer and a default`);
  const code = await coder(name, entry, streams[0].randomizer);
  const digests = await digestsOf(name, entry, pythonEntry);
  const isPast = PAST.test(text(entry["kind"] ?? ""));
  const more = isPast || RARE_FIELDS.some((field) => field in entry) ? await load("more") : null;
  const promise = optional(entry["central_epsilon"]);
  const delta = number(entry["delta"] ?? DELTA);
  const days = model ? Infinity : (more?.centralDaysOf(entry) ?? null);
  return {
    ...{ name, entry },
    description: text(entry["description"]),
    epoch: text(entry["epoch"]),
    expires: (Date.parse(`${text(entry["expires"])}T00:00:00Z`) + DAY_MS) / 1000,
    sampling: number(entry["sampling"] ?? 1),
    kem,
    period: more?.periodOf(entry) ?? null,
    breakdown: more?.breakdownOf(entry) ?? null,
    experiment: more?.experimentOf(entry) ?? null,
    finder: more?.finderOf(name, entry, streams[0].randomizer) ?? null,
    model,
    past: (isPast && more?.pastOf(entry, code)) || null,
    dummies: development ? null : (more?.dummiesOf(entry) ?? null),
    default: entry["default"] === undefined ? null : code(entry["default"]),
    limits: {
      reportsPerEpoch: number(entry["reports_per_epoch"]),
      lifetimeEpsilon: number(entry["lifetime_epsilon"]),
      lifetimeCentralEpsilon: optional(entry["lifetime_central_epsilon"]),
    },
    central: promise === null || development ? null : { epsilon: promise, delta, days },
    streams,
    digests,
    code,
  };
}

async function streamsOf(
  name: string,
  entry: Table,
  judgingLoss = 0,
): Promise<[Stream, ...Stream[]]> {
  const epsilon = number(entry["epsilon"]);
  // Totals of different lists of values cannot be added, so each list has a separate stream.
  const list = entry["grown"] === undefined ? "" : `/v${listed(entry["values"]).length}`;
  const stream = name + list;
  const randomizer = await randomizerOf(name, entry, epsilon);
  // As Python's versions_of(): an earlier list that is no valid metric was never published.
  for (const size of listed(entry["grown"] ?? []).map(number))
    await randomizerOf(name, { ...entry, values: listed(entry["values"]).slice(0, size) }, epsilon);
  // PRIVACY: a device of a model sends only one of the two kinds of report.
  const privacyLoss = Math.max(randomizer.privacyLoss, judgingLoss);
  const mainStream = {
    ...{ name: stream, tier: "", epsilon },
    randomizer: judgingLoss ? { ...randomizer, privacyLoss } : randomizer,
  };
  const tiers = listed(entry["tiers"] ?? []).map(number);
  if (!tiers.length) return [mainStream];
  const { general } = await load("more");
  const tierStreams = tiers.map(async (tier): Promise<Stream> => {
    const tierName = general(tier);
    const randomizer = await randomizerOf(name, entry, tier);
    return { name: `${stream}/${tierName}`, tier: tierName, epsilon: tier, randomizer };
  });
  return [mainStream, ...(await Promise.all(tierStreams))];
}

async function randomizerOf(name: string, entry: Table, epsilon: number): Promise<Randomizer> {
  const mechanism = await mechanismOf(text(entry["mechanism"]));
  if (mechanism?.version !== entry["version"] || !mechanism) {
    throw new UnknownMetric(`metric "${name}" has an unknown mechanism; upgrade hubbub`);
  }
  const scale = epsilon / number(entry["epsilon"]);
  const parameters = Object.fromEntries(
    Object.entries(table(entry["parameters"])).map(([key, parameter]) => {
      return [key, number(parameter) * (key === "permanent_epsilon" ? scale : 1)];
    }),
  );
  const values = entry["values"] === null ? [] : listed(entry["values"]).map(text);
  const parts = mechanism.values === "parts" ? (await load("more")).partsOf(values) : null;
  const sizes = [...(parts?.values() ?? [])].map((values) => values.length);
  const randomizer = mechanism.build({
    epsilon,
    categories: values.length,
    sizes,
    beginnings: listed(entry["beginnings"] ?? []).map(text),
    parameters,
  });
  // PRIVACY: the device checks the promised loss itself.
  if (!(randomizer.privacyLoss <= epsilon)) {
    throw new UnknownMetric(`metric "${name}" reveals more than its epsilon`);
  }
  return randomizer;
}

async function coder(name: string, entry: Table, randomizer: Randomizer): Promise<Metric["code"]> {
  const code = await plainCoder(entry, randomizer);
  return (value) => withSubject(`metric "${name}"`, () => code(value));
}

async function plainCoder(entry: Table, randomizer: Randomizer): Promise<Metric["code"]> {
  const { values, kind, edges, other, mechanism } = entry;
  if (isOfVectors(entry)) return (await load("vectors")).coderOfVectors(entry);
  const ofParts = (await mechanismOf(text(mechanism)))?.values === "parts";
  if (values === null || kind === "set" || ofParts || edges !== undefined || other === true) {
    const { coderOf } = await load("more");
    return coderOf(entry, ofParts, randomizer);
  }
  const valueTexts = listed(values).map(text);
  return (value) => listedPlace(valueTexts, value);
}

/** Whether a metric is asked by a mechanism of vectors. */
export const isOfVectors = ({ kind, model }: Table) =>
  kind === "vector" || kind === "rate" || model !== undefined;

/** @throws UnknownMetric the kind of values is unknown, or does not fit the mechanism. */
async function refuseKind(name: string, entry: Table): Promise<void> {
  const values = (await mechanismOf(text(entry["mechanism"])))?.values;
  const { fitsKind } = await load("checks");
  if (!fitsKind(entry, values)) {
    throw new UnknownMetric(`metric "${name}" has unknown values; upgrade hubbub`);
  }
}

function kemOf(name: string, kem: unknown): Kem {
  if (kem === "x25519" || kem === "x-wing") return kem;
  throw new UnknownMetric(`metric "${name}" has an unknown kem; upgrade hubbub`);
}

function optional(value: unknown): number | null {
  return value === undefined || value === null ? null : number(value);
}
