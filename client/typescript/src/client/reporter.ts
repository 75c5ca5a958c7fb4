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
import type { BitSource } from "../mechanisms/random_bits.js";
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
import { accountsOf } from "./account.js";
import { isTrusted } from "./trust.js";

/**
 * A payload that was drawn and is neither sealed nor stored yet; a filler's payload is empty.
 * named: the stream with the name of the cell, if there is one. late: the moment from which the
 * shuffler refuses the report, in seconds since 1970.
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

/**
 * Whether reports of this device need the parts of the SDK in more.ts: for permanent coins,
 * defaults, or a notice.
 */
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
  /** Holds the examples of models; null if the bundle has no model. */
  learner: Learner | null = null;
  /** The counter that replaces drawing in local mode. */
  local: Local | null = null;

  /**
   * Call `ready()` before the first report.
   *
   * maxEpsilon: the maximum epsilon of a report that the app allows, in nats; the person may allow
   * less. publicValues: this device's values of public fields, which are sent in the clear.
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

  /**
   * The maximum epsilon of a report in nats: the promised one (central for a metric with a crowd),
   * and the local one.
   */
  get allowed(): [most: number, local: number] {
    const { preference, maxLocal } = this.#device.consent;
    const lowered = (limit: number | null) => Math.min(this.maxEpsilon, limit ?? Infinity);
    return [lowered(preference), lowered(maxLocal)];
  }

  /** Whether the spent budget can be stored, as far as is known. */
  get canKeep(): boolean {
    return this.#usable;
  }

  /** Loads the parts of the SDK that reports of this device need. */
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
   * Whether a report waits for the end of its epoch, as all reports of a metric with a default do.
   * So neither a report's existence nor its moment reveals whether the device had something to
   * report.
   */
  isHeld({ stream, epoch }: { stream: string; epoch: number }): boolean {
    const metric = this.bundle.metrics.get(metricNameOf(stream));
    if (!metric || metric.default === null || this.bundle.development) return false;
    return epoch >= epochAt(this.now(), metric.epoch);
  }

  /** Whether the operator has stopped the reports of a stream in an epoch. */
  isStopped({ stream, epoch }: { stream: string; epoch: number }): boolean {
    const metric = this.bundle.metrics.get(metricNameOf(stream));
    return !!metric && !samplingOf(metric, epoch, this.notice);
  }

  /**
   * Removes the oldest `count` payloads, which were stored or given up, and continues with this
   * device's state.
   */
  async entered(count: number, device: Device): Promise<void> {
    this.#drawn = this.#drawn.slice(count);
    await this.stand(device);
  }

  /**
   * Continues with this state of the device; payloads that are not stored yet are charged to it
   * again.
   */
  async stand(device: Device): Promise<void> {
    await this.ready(device);
    let { accounts } = device;
    for (const payload of this.#drawn) {
      accounts = accountsOf({ ...device, accounts }, payload.metric);
      accounts = entered(accounts, payload, this.bundle.caps);
    }
    this.#device = { ...device, accounts };
    // PRIVACY: after another tab has accepted another operator's bundle, this page stops reporting.
    this.#usable = isTrusted(device, signerOf(this.bundle));
  }

  /** Stops drawing until the state can be written again. */
  cannotKeep(): void {
    this.#usable = false;
  }

  /** Switches reporting in this page or process on or off. */
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
   * This device's arm of an experiment; if the device does not report, the first arm that
   * continues.
   *
   * @throws UnknownMetric the bundle has no such experiment.
   */
  arm(name: string): string {
    if (!this.#more) throw new UnknownMetric("the catalog has no experiments");
    return this.#more.arm(this, name);
  }

  /** The public value of a metric's experiment; empty after the experiment is over. */
  #armOf({ experiment }: Metric): Public {
    return experiment && this.#more ? this.#more.publicArm(this, experiment) : {};
  }

  /**
   * Reports one person's example to a model, in a round of this device.
   *
   * @throws UnknownMetric the bundle has no such model, or one that this version cannot report.
   * @throws ValueOutOfDomain the features or the label do not fit the model; the message hides
   * them.
   */
  learn(name: string, features: unknown, label: unknown): Outcome {
    const metric = metricOf(this.bundle, name, "model");
    if (!metric.model) throw new UnknownMetric(`metric "${name}" is not a model: call report()`);
    const example = metric.model.example(features, label);
    if (this.local) return this.local.count(metric, example);
    const outcome = this.say(metric, example, "");
    this.learner?.settle(name, example, outcome);
    this.learner?.count(name, example);
    return outcome;
  }

  /**
   * Randomizes a metric's code, or a model's example, and holds the payload.
   *
   * code: the value as the mechanism takes it. cell: this device's cell of a public breakdown.
   * past: the finished epoch of the report; null only checks whether a report is possible now, and
   * returns "awaits_state" if it is. spoken: the string itself, for metrics that discover strings.
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

  /** Holds a filler for a finished epoch, unless no device sends anything for that epoch. */
  fill(metric: Metric, epoch: number): void {
    if (this.#obstacle(metric, epoch, epoch)) return;
    const [stream] = metric.streams;
    const charge = { metric, stream, epoch, tag: "", filler: true };
    this.#hold(charge, stream.name, () => new Uint8Array());
  }

  /**
   * The reason why no report is possible, apart from the ledger and the device's own coins; null
   * for none.
   */
  #obstacle(metric: Metric, epoch: number, past?: number): Outcome | null {
    if (!this.#usable) return "no_state";
    const start = epochStart(epoch, metric.epoch);
    const lastMoment =
      past === undefined ? this.now() : epochStart(past + +!metric.past, metric.epoch) - 1;
    if (lastMoment >= metric.expires) return "expired";
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
      // The coin depends on the device and the epoch alone. It must not depend on the value, nor on
      // the sampling chance, which a notice may change.
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
    // PRIVACY: the ledger is checked before any coin is drawn.
    const accounts = charged(accountsOf(this.#device, metric), charge, this.bundle.caps);
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

  /** The stored notice, if the operator of this bundle signed it; null otherwise. */
  get notice(): Notice | null {
    const { notice } = this.#device;
    return notice?.line.includes(signerOf(this.bundle)) ? notice : null;
  }
}
