/** Metrics: what a bundle asks, each stream of it with its randomizer. */
import { UnknownMetric, ValueOutOfDomain } from "../errors.js";
import { load } from "../loading.js";
import { mechanismOf } from "../mechanisms/at_hand.js";
import type { BitSource } from "../mechanisms/bits.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Coded, Memo, Randomizer } from "../mechanisms/randomizer.js";
import type { Kem } from "../transport/sealing.js";
import type { Dummies } from "./dummies.js";
import { listed, number, table, text, type Table } from "./json.js";
import type { Notice } from "./sampling.js";
import { listedPlace, readable } from "./values.js";

/**
 * A metric at one epsilon, with totals of its own, of the values that are asked now: "theme",
 * "theme/0.5", and "theme/v4/0.5" where values were appended. epsilon: in nats. tier: "" for the
 * metric itself.
 */
export interface Stream {
  readonly name: string;
  readonly tier: string;
  readonly epsilon: number;
  readonly randomizer: Randomizer;
}

/** What one device may say about a metric, in nats. central: to who sees whole epochs alone. */
export interface Limits {
  readonly reportsPerEpoch: number;
  readonly lifetimeEpsilon: number;
  readonly lifetimeCentralEpsilon: number | null;
}

/**
 * What all reports of an epoch say about a person to who sees it shuffled. epsilon: in nats. days: for
 * how many in a row that is, all their epochs together; null for each epoch alone, Infinity for all
 * that a device ever says.
 */
export interface CentralPromise {
  readonly epsilon: number;
  readonly delta: number;
  readonly days: number | null;
}

/** When a device is asked that is asked on one day of each period. Days are numbered from 1970. */
export interface Period {
  /** The days of the period that holds this one: the first, and the first after them. */
  days(day: number): readonly [first: number, after: number];
  /** Whether a day is the device's own; memo: of the metric, whichever tier reports. */
  isOwn(day: number, memo: Memo): boolean;
}

/** What those devices are asked that look for strings which nobody listed, where some do. */
export interface Finder {
  readonly stream: Stream;
  /** Whether a device does, in an epoch or the period it is of, by its first; memo: of the metric. */
  looks(first: number, memo: Memo): boolean;
  /**
   * The text of a value that the metric has taken.
   *
   * @throws ValueOutOfDomain no tree takes it, whichever half the device is of.
   */
  spoken(value: unknown): string;
}

/** One person as a model takes them, columns in [0, 1]. clipped: how many values were. */
export interface Example {
  readonly columns: readonly number[];
  readonly label: number;
  readonly clipped: number;
}

/** What rounds have taught so far. number: the last round that is in it. edges: of who judges. */
export interface ModelState {
  readonly number: number;
  readonly centre: readonly number[];
  readonly weights: readonly number[];
  readonly edges: readonly number[];
}

/** Draws the coins of a person's report: called once that is charged for. */
export type Tell = (coins: BitSource) => Bytes;

/** What a metric's reports teach that is a model. judgingLoss: of a report of who judges, in nats. */
export interface Model {
  readonly columns: number;
  readonly weights: number;
  readonly judgingLoss: number;
  /** The round that an epoch is, where the device is in it; null for none. memo: of the metric. */
  round(epoch: number, memo: Memo): number | null;
  /** @throws ValueOutOfDomain others than its features or label; the message never shows them. */
  example(features: unknown, label: unknown): Example;
  /** What a device of this round tells; null without the state that it learns by or judges. */
  teller(round: number, example: Example, state: ModelState | null): Tell | null;
}

/**
 * A kind whose value a device computes from its own past, once an epoch. counts: from how often each
 * event happened in it, once it is over; otherwise at its first event, by the epochs that were reported.
 */
export interface Past {
  readonly counts: boolean;
  /** What the app reports. @throws ValueOutOfDomain none of it; the message never shows it. */
  event(value: unknown): string;
  /** events: how often each happened; reported: the other epochs. */
  computed(
    epoch: number,
    events: Readonly<Record<string, number>>,
    reported: readonly number[],
  ): Coded;
}

/** What an app says in the clear of its device, as its OS; or what tells it, at every report. */
export type Public = Readonly<Record<string, string | (() => string)>>;

/** What is public of devices, by which answers are told apart. */
export interface Breakdown {
  readonly fields: readonly string[];
  /** What follows the metric's name in a stream's: "@os=linux", or "" if any of it is not listed. */
  cell(publicValues: Public): string;
  /** Every one there is. */
  readonly cells: readonly string[];
}

/**
 * What metrics measure apart by arms that devices draw. definition: its arms with their weights.
 * Moments are in seconds since 1970.
 */
export interface Experiment {
  readonly name: string;
  readonly definition: string;
  /** The arms that devices still get. */
  live(notice: Notice | null, now: number): readonly string[];
  /** Whether an arm was ended, so that nobody reports in one. */
  isOver(notice: Notice | null, now: number): boolean;
  /** A device's own arm; memo: of the experiment. */
  drawn(memo: Memo): string;
}

/** One question that an app may answer. */
export interface Metric {
  readonly name: string;
  /** What the bundle says of it. */
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
  /** What a device sends beside a report that is nobody's; null for nothing, as in development. */
  readonly dummies: Dummies | null;
  /** What a device says that ran in an epoch and was told nothing of it; null for nothing. */
  readonly default: Coded | null;
  readonly limits: Limits;
  /** The promise to who sees whole epochs alone; null where there is none, as in development. */
  readonly central: CentralPromise | null;
  /** Its own, then its tiers', the smallest epsilon first. */
  readonly streams: readonly [Stream, ...Stream[]];
  /** SHA-256 of what may never change under its name, in hex; of each list of values, by its stream. */
  readonly digests: ReadonlyMap<string, string>;
  /** @throws ValueOutOfDomain it is not one of its values; the message never shows it. */
  code(value: unknown): Coded;
}

// What few metrics ask.
const ASKING = [
  ...["period", "report_on", "breakdown", "dummies_each", "discover", "central_period"],
  "experiment",
];
const KNOWN: ReadonlySet<string> = new Set([
  ...["mechanism", "version", "epsilon", "parameters", "values", "epoch"],
  ...["kind", "edges", "outside", "other", "ranges", "rate", "central_epsilon", "crowd", "delta"],
  ...["honest", "dummies", "max_local_epsilon", "rolling", "kem", "beginnings", "default"],
  ...["count_epsilon", "dummies_scale", "dummies_shift", "model", ...ASKING],
  ...["description", "owner", "expires", "min_batch", "unit", "tiers", "sampling", "grown"],
  ...["reports_per_epoch", "lifetime_epsilon", "lifetime_central_epsilon"],
  // How the mechanism was chosen, how numbers are published and what the operator keeps: nothing
  // that a device does.
  ...["choice", "release", "candidates", "alert", "keep", "supersedes"],
]);
/** Kinds of values that are numbers. */
export const NUMERIC: ReadonlySet<unknown> = new Set(["count", "number", "duration", "size"]);
// Kinds whose value a device computes from its past.
const PAST = /^(funnel|rate|activity|retention)$/;
const DELTA = 1e-8; // of a promise that says none
const DAY_MS = 86_400_000;

/**
 * A metric as a bundle's entry says it. development: of an installation that protects nobody.
 * spelled: the entry with numbers as Python spells them, which tells 6.0 from 6.
 *
 * @throws UnknownMetric it asks what this version cannot do.
 */
export async function metricFrom(
  name: string,
  entry: Table,
  development: boolean,
  pythonEntry = entry,
): Promise<Metric> {
  const unknownField = Object.keys(entry).find((field) => !KNOWN.has(field));
  if (unknownField !== undefined)
    throw new UnknownMetric(
      `metric "${name}" has ${unknownField}: upgrade hubbub, or leave it out`,
    );
  const { digestsOf, refuseLargeBatch, refuseMetric } = await load("checks");
  refuseMetric(name, entry, pythonEntry);
  await refuseKind(name, entry);
  const model = entry["model"] !== undefined ? (await load("vectors")).modelOf(name, entry) : null;
  const streams = await streamsOf(name, entry, model?.judgingLoss);
  const kem = kemOf(name, entry["kem"] === undefined ? "x25519" : entry["kem"]);
  refuseLargeBatch(entry, streams[0].randomizer.payloadBytes, kem);
  if (entry["crowd"] !== undefined && streams[0].randomizer.isUneven)
    throw new UnknownMetric(`metric "${name}" has an unproven crowd`);
  if (entry["default"] !== undefined && Number.isFinite(streams[0].randomizer.permanentLoss))
    throw new UnknownMetric(`metric "${name}" answers for life, and has a default`);
  const code = await coder(name, entry, streams[0].randomizer);
  const digests = await digestsOf(name, entry, pythonEntry);
  const isPast = PAST.test(text(entry["kind"] ?? ""));
  const asking = isPast || ASKING.some((field) => field in entry) ? await load("more") : null;
  const promise = optional(entry["central_epsilon"]);
  const delta = number(entry["delta"] ?? DELTA);
  const days = model ? Infinity : (asking?.centralDaysOf(entry) ?? null);
  return {
    ...{ name, entry },
    description: text(entry["description"]),
    epoch: text(entry["epoch"]),
    expires: (Date.parse(`${text(entry["expires"])}T00:00:00Z`) + DAY_MS) / 1000,
    sampling: number(entry["sampling"] ?? 1),
    kem,
    period: asking?.periodOf(entry) ?? null,
    breakdown: asking?.breakdownOf(entry) ?? null,
    experiment: asking?.experimentOf(entry) ?? null,
    finder: asking?.finderOf(name, entry, streams[0].randomizer) ?? null,
    model,
    past: (isPast && asking?.pastOf(entry, code)) || null,
    dummies: development ? null : (asking?.dummiesOf(entry) ?? null),
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
  // Totals of two lists do not add: each has a stream of its own.
  const list = entry["grown"] === undefined ? "" : `/v${listed(entry["values"]).length}`;
  const stream = name + list;
  const randomizer = await randomizerOf(name, entry, epsilon);
  // As versions_of() of Python: what can be no metric has never been one.
  for (const size of listed(entry["grown"] ?? []).map(number))
    await randomizerOf(name, { ...entry, values: listed(entry["values"]).slice(0, size) }, epsilon);
  // PRIVACY: a device of a model tells one of both.
  const privacyLoss = Math.max(randomizer.privacyLoss, judgingLoss);
  const mainStream = {
    ...{ name: stream, tier: "", epsilon },
    randomizer: judgingLoss ? { ...randomizer, privacyLoss } : randomizer,
  };
  const tiers = listed(entry["tiers"] ?? []).map(number);
  if (!tiers.length) return [mainStream];
  const { general } = await load("more");
  const scaled = tiers.map(async (tier): Promise<Stream> => {
    const called = general(tier);
    const randomizer = await randomizerOf(name, entry, tier);
    return { name: `${stream}/${called}`, tier: called, epsilon: tier, randomizer };
  });
  return [mainStream, ...(await Promise.all(scaled))];
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
  // PRIVACY: what is promised is measured here, too.
  if (!(randomizer.privacyLoss <= epsilon)) {
    throw new UnknownMetric(`metric "${name}" says more than its epsilon`);
  }
  return randomizer;
}

async function coder(name: string, entry: Table, randomizer: Randomizer): Promise<Metric["code"]> {
  const code = await plainCoder(entry, randomizer);
  return (value) => {
    try {
      return code(value);
    } catch (error) {
      throw new ValueOutOfDomain(`metric "${name}": ${readable(error)}`);
    }
  };
}

async function plainCoder(entry: Table, randomizer: Randomizer): Promise<Metric["code"]> {
  const { values, kind, edges, other, mechanism } = entry;
  if (isOfVectors(entry)) return (await load("vectors")).coderOfVectors(entry);
  const ofParts = (await mechanismOf(text(mechanism)))?.values === "parts";
  if (values === null || kind === "set" || ofParts || edges !== undefined || other === true) {
    const { coderOf } = await load("more");
    return coderOf(entry, ofParts, randomizer);
  }
  const plain = listed(values).map(text);
  return (value) => listedPlace(plain, value);
}

/** Whether a metric is asked by a mechanism of vectors. */
export const isOfVectors = ({ kind, model }: Table) =>
  kind === "vector" || kind === "rate" || model !== undefined;

/** @throws UnknownMetric a kind of values that is not known, or one that is told as another. */
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
