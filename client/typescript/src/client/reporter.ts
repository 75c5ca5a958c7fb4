/**
 * The reporter: checks a copy of the ledger, draws coins, holds the payload. No I/O, and no
 * waiting.
 */
import { halfOf, keyAt, metricOf, signerOf, type Bundle } from "../catalog/bundle.js";
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import type { Example, Metric, Public, Stream, Tell } from "../catalog/metric.js";
import { metricNameOf, streamWithin } from "../catalog/tiers.js";
import { samplingOf, type Notice } from "../catalog/sampling.js";
import { UnknownMetric } from "../errors.js";
import { load } from "../loading.js";
import type { BitSource } from "../mechanisms/bits.js";
import { exact } from "../mechanisms/fraction.js";
import { concatenated, packed } from "../mechanisms/packing.js";
import { purpose } from "../mechanisms/permanent.js";
import { atMost } from "../mechanisms/probability.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Coded } from "../mechanisms/randomizer.js";
import { isOn } from "./consent.js";
import type { Device } from "./device.js";
import type { Diagnostics } from "./diagnostics.js";
import type { Learner } from "./learner.js";
import type { Local } from "./local.js";
import { charged, entered, type Charge } from "./ledger.js";
import type { Outcome } from "./outcome.js";
import { opened } from "./account.js";
import { isTrusted } from "./trust.js";

/**
 * A payload that was drawn and is not sealed or stored yet; empty for a filler. named: its stream,
 * perhaps of a cell. late: when the shuffler stops accepting it, in seconds since 1970.
 */
export interface Payload {
  readonly metric: Metric;
  readonly stream: Stream;
  readonly named: string;
  readonly filler: boolean;
  readonly epoch: number;
  readonly tag: string;
  readonly generation: number;
  readonly payload: Bytes;
  readonly made: number;
  readonly late: number;
}

const MOST_HELD = 10_000;
const EPOCH_BYTES = 8;

/** Whether any metric asks for permanent coins, of itself or by a notice, or has a default. */
function needsMore({ metrics }: Bundle, { notice }: Device): boolean {
  return (
    !!notice ||
    [...metrics.values()].some((metric) => {
      const permanent = "permanentKey" in metric.streams[0].randomizer;
      const { sampling, period, finder, model, past, experiment } = metric;
      const asks = sampling < 1 || period || finder || model || past || experiment;
      return asks || metric.default !== null || permanent;
    })
  );
}

/**
 * A page's or process's view of the device, and the payloads that it drew since it last stored
 * them.
 */
export class Reporter {
  #device: Device;
  #usable = true;
  #off = false;
  #drawn: Payload[] = [];
  #more: typeof import("../more.js") | null = null;
  /** What examples of models wait by; null where the bundle has none. */
  learner: Learner | null = null;
  /** The counter that replaces drawing in local mode. */
  local: Local | null = null;

  /**
   * maxEpsilon: what the app allows a report at most; the person's preference may be less. told: what
   * the app says in the clear of this device. Have it `ready()` first.
   */
  constructor(
    readonly bundle: Bundle,
    device: Device,
    readonly coins: BitSource,
    readonly now: () => number,
    readonly maxEpsilon: number,
    readonly publicValues: Public,
    readonly diagnostics: Diagnostics,
  ) {
    this.#device = device;
  }

  /** The payloads that are not stored yet, oldest first. */
  get drawn(): readonly Payload[] {
    return this.#drawn;
  }

  /** The device, including payloads that are not stored yet. */
  get device(): Device {
    return this.#device;
  }

  /** Whether this page or process has stopped reporting, whatever the stored state is. */
  get isOff(): boolean {
    return this.#off;
  }

  /** Whether report() may draw. */
  get isOn(): boolean {
    return !this.#off && this.#usable && isOn(this.#device.consent.generation);
  }

  /** The most epsilon that a report may have: as promised, and to whoever looks. */
  get allowed(): [most: number, local: number] {
    const { preference, maxLocal } = this.#device.consent;
    const most = (own: number | null) => Math.min(this.maxEpsilon, own ?? Infinity);
    return [most(preference), most(maxLocal)];
  }

  /** Whether the spent budget can be stored, as far as is known. */
  get canKeep(): boolean {
    return this.#usable;
  }

  /** Loads what reports of this device need. */
  async ready(device: Device): Promise<void> {
    if (needsMore(this.bundle, device)) this.#more ??= await load("more");
    if ([...this.bundle.metrics.values()].some(({ model }) => model)) {
      this.learner ??= new (await load("vectors")).Learner(this, this.diagnostics);
    }
  }

  /** The change that records that the device runs, if a later report may need it. */
  running(): ((device: Device) => Device) | null {
    return this.#more?.running(this) ?? null;
  }

  /** Makes the reports of finished epochs. */
  cover(): void {
    this.#more?.cover(this);
  }

  /** The seconds until the next report of a finished epoch. */
  secondsToCover(): number {
    return this.#more?.secondsToNext(this) ?? Infinity;
  }

  /**
   * Whether a report waits for the end of its epoch: of metrics with a default, so that neither that
   * there is one nor its moment tells whether there was something to say.
   */
  isHeld({ stream, epoch }: { stream: string; epoch: number }): boolean {
    const metric = this.bundle.metrics.get(metricNameOf(stream));
    if (!metric || metric.default === null || this.bundle.development) return false;
    return epoch >= epochAt(this.now(), metric.epoch);
  }

  /** Whether the operator has stopped what would be sent of a stream in an epoch. */
  isStopped({ stream, epoch }: { stream: string; epoch: number }): boolean {
    const metric = this.bundle.metrics.get(metricNameOf(stream));
    return !!metric && !samplingOf(metric, epoch, this.notice);
  }

  /** What was drawn is the state's now, or given up; and the device stands so. */
  async entered(count: number, device: Device): Promise<void> {
    this.#drawn = this.#drawn.slice(count);
    await this.stand(device);
  }

  /** The device stands so now; what was drawn since is entered in this copy. */
  async stand(device: Device): Promise<void> {
    await this.ready(device);
    let { accounts } = device;
    for (const payload of this.#drawn) {
      accounts = opened({ ...device, accounts }, payload.metric);
      accounts = entered(accounts, payload, this.bundle.caps);
    }
    this.#device = { ...device, accounts };
    // PRIVACY: once another operator's bundle was taken, in another tab, this one asks no more.
    this.#usable = isTrusted(device, signerOf(this.bundle));
  }

  /** Stops drawing until the state can be written again. */
  cannotKeep(): void {
    this.#usable = false;
  }

  /** Stops or goes on. */
  switch(isEnabled: boolean): void {
    this.#off = !isEnabled;
  }

  /** Drops payloads that are not stored; returns their streams. */
  forget(): string[] {
    const streams = this.#drawn.map(({ named: streamName }) => streamName);
    this.#drawn = [];
    this.local?.forget();
    return streams;
  }

  /**
   * Randomizes one value and holds the payload.
   *
   * @throws UnknownMetric the bundle has no such metric, or one that this version cannot report.
   * @throws ValueOutOfDomain the metric has no such value; the message does not show it.
   */
  report(name: string, value: unknown): Outcome {
    const metric = metricOf(this.bundle, name);
    const cell = () =>
      metric.breakdown?.cell({ ...this.publicValues, ...this.#armOf(metric) }) ?? "";
    if (metric.past && this.#more) return this.#more.note(this, metric, value, cell);
    const code = metric.code(value);
    const text = metric.finder?.spoken(value);
    if (this.local) return this.local.count(metric, text ?? code);
    return this.say(metric, code, cell(), undefined, text);
  }

  /**
   * This device's arm of an experiment; the first that goes on where it does not report.
   *
   * @throws UnknownMetric the bundle has no such experiment.
   */
  arm(name: string): string {
    if (!this.#more) throw new UnknownMetric("there is no such experiment; there are none");
    return this.#more.arm(this, name);
  }

  /** What the public field of a metric's experiment says: nothing once that is over. */
  #armOf({ experiment }: Metric): Public {
    return experiment && this.#more ? this.#more.publicArm(this, experiment) : {};
  }

  /**
   * Tells a model of one person, in a round of this device's.
   *
   * @throws UnknownMetric the bundle has no such model, or one that this version does not know.
   * @throws ValueOutOfDomain others than its features and label; the message does not show them.
   */
  learn(name: string, features: unknown, label: unknown): Outcome {
    const metric = metricOf(this.bundle, name);
    if (!metric.model) throw new UnknownMetric(`metric "${name}" is not a model: call report()`);
    const example = metric.model.example(features, label);
    if (this.local) return this.local.count(metric, example);
    const outcome = this.say(metric, example, "");
    this.learner?.settle(name, example, outcome);
    this.learner?.count(name, example);
    return outcome;
  }

  /**
   * Randomizes a metric's code, or an example of a model, and holds the payload. cell: what is public
   * of this device. past: the epoch to report of, if that is over; null only asks whether it may report
   * now, which "awaits_state" says. spoken: the value, for those devices that look for strings.
   */
  say(
    metric: Metric,
    code: Coded | Example,
    cell: string,
    past?: number | null,
    text?: string,
  ): Outcome {
    if (this.#off || !isOn(this.#device.consent.generation)) return "disabled";
    const stream = streamWithin(metric, ...this.allowed);
    if (!stream) return "declined";
    const epoch = past ?? epochAt(this.now(), metric.epoch);
    return (
      this.#obstacle(metric, epoch, past ?? undefined) ??
      this.#draw(metric, stream, cell, epoch, past === null ? null : code, text)
    );
  }

  /** Holds a filler of an epoch that is over, unless no device sends anything of it. */
  fill(metric: Metric, epoch: number): void {
    if (this.#obstacle(metric, epoch, epoch)) return;
    const [stream] = metric.streams;
    const charge = { metric, stream, epoch, tag: "", filler: true };
    this.#hold(charge, stream.name, () => new Uint8Array());
  }

  /** What stands against a report, but for the ledger and the device's own coins. */
  #obstacle(metric: Metric, epoch: number, past?: number): Outcome | null {
    if (!this.#usable) return "no_state";
    const start = epochStart(epoch, metric.epoch);
    const last =
      past === undefined ? this.now() : epochStart(past + +!metric.past, metric.epoch) - 1;
    if (last >= metric.expires) return "expired";
    if (!halfOf(keyAt(this.bundle.keys, start), metric.kem)) return "no_key";
    return this.#drawn.length >= MOST_HELD ? "overflowed" : null;
  }

  #draw(
    metric: Metric,
    listedStream: Stream,
    cell: string,
    epoch: number,
    code: Coded | Example | null,
    text?: string,
  ): Outcome {
    const { secret } = this.#device;
    const { period, finder, model } = metric;
    const memo = this.#more?.memoOf(secret, listedStream.name);
    const deviceMemo = this.#more?.memoOf(secret, metric.name);
    if (deviceMemo && period?.isOwn(epoch, deviceMemo) === false) return "not_its_day";
    const round = deviceMemo && model ? model.round(epoch, deviceMemo) : null;
    if (model && round === null) return "not_its_round";
    const chance = samplingOf(metric, epoch, this.notice);
    if (!chance) return "stopped";
    if (chance < 1) {
      // A coin of the device's own, whatever the value, and the same whatever the chance.
      const epochBytes = packed(BigInt(epoch), EPOCH_BYTES).reverse();
      const coins = memo?.coins(concatenated(purpose("sampling"), epochBytes));
      if (!coins?.chance(atMost(exact(chance)))) return "not_sampled";
    }
    const finds =
      deviceMemo && finder?.looks(period?.days(epoch)[0] ?? epoch, deviceMemo) ? finder : null;
    const [stream, content] = finds ? [finds.stream, text ?? ""] : [listedStream, code];
    const { randomizer } = stream;
    let randomize: Tell | null = (coins) => randomizer.randomize(content as Coded, coins, memo);
    if (round !== null) randomize = this.learner?.teller(metric, round, code as Example) ?? null;
    if (code === null) randomize = null;
    const key = memo && randomize && randomizer.permanentKey?.(content as Coded, memo);
    const tag = (key && memo.tag(key)) ?? "";
    const streamName = metric.name + cell + stream.name.slice(metric.name.length);
    const charge = { metric, stream, epoch, tag, filler: false };
    return this.#hold(charge, streamName, randomize);
  }

  #hold(charge: Charge & { filler: boolean }, streamName: string, randomize: Tell | null): Outcome {
    const { metric, epoch } = charge;
    // PRIVACY: the ledger is asked before any coin is drawn.
    const accounts = charged(opened(this.#device, metric), charge, this.bundle.caps);
    if (typeof accounts === "string") return accounts;
    if (!randomize) return "awaits_state";
    this.#device = { ...this.#device, accounts };
    const deadline = epochStart(epoch + 1, metric.epoch) + graceSeconds(metric.epoch);
    const { generation } = this.#device.consent;
    const payload = randomize(this.coins);
    this.#drawn.push({
      ...charge,
      named: streamName,
      generation,
      payload,
      made: this.now(),
      late: deadline,
    });
    return "queued";
  }

  /** The operator's notice, if it is of who signed this bundle. */
  get notice(): Notice | null {
    const { notice } = this.#device;
    return notice?.line.includes(signerOf(this.bundle)) ? notice : null;
  }
}
