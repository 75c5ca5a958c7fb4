/** The reporter: asks a copy of the ledger, draws coins, holds the payload. No I/O, and no waiting. */
import { halfOf, keyAt, metricOf, signerOf, type Bundle } from "../catalog/bundle.js";
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import type { Metric, Stream } from "../catalog/metric.js";
import { streamWithin } from "../catalog/tiers.js";
import { samplingOf, type Notice } from "../catalog/sampling.js";
import type { BitSource } from "../mechanisms/bits.js";
import { exact } from "../mechanisms/fraction.js";
import { joined, packed } from "../mechanisms/packing.js";
import { purpose } from "../mechanisms/permanent.js";
import { atMost } from "../mechanisms/probability.js";
import type { Bytes } from "../mechanisms/packing.js";
import type { Coded } from "../mechanisms/randomizer.js";
import { isOn } from "./consent.js";
import type { Device } from "./device.js";
import { charged, entered } from "./ledger.js";
import type { MemoOf } from "./memo.js";
import type { Outcome } from "./outcome.js";
import { opened } from "./account.js";

/** A payload that was drawn and is neither sealed nor entered yet. late: in seconds since 1970. */
export interface Payload {
  readonly metric: Metric;
  readonly stream: Stream;
  readonly epoch: number;
  readonly tag: string;
  readonly generation: number;
  readonly payload: Bytes;
  readonly made: number;
  readonly late: number;
}

const MOST_HELD = 10_000;
const EPOCH_BYTES = 8;

/** Whether any metric asks for permanent coins, of itself or by a notice. */
export function needsMemo({ streams }: Bundle, { notice }: Device): boolean {
  return (
    !!notice ||
    [...streams.values()].some(
      ([metric, { randomizer }]) => metric.sampling < 1 || randomizer.permanentKey !== undefined,
    )
  );
}

/** One page's or process's view of the device, and what it drew since that was last entered. */
export class Reporter {
  #device: Device;
  #usable = true;
  #off = false;
  #drawn: Payload[] = [];
  #memoOf: MemoOf | null = null;

  /**
   * maxEpsilon: what the app allows a report at most; the person's preference may be less. Where it
   * `needsMemo`, have it `ready()` first.
   */
  constructor(
    readonly bundle: Bundle,
    device: Device,
    readonly coins: BitSource,
    readonly now: () => number,
    readonly maxEpsilon: number,
  ) {
    this.#device = device;
  }

  /** What was drawn and not entered yet, oldest first. */
  get drawn(): readonly Payload[] {
    return this.#drawn;
  }

  /** Whether what is spent can be written down, as far as is known. */
  get canKeep(): boolean {
    return this.#usable;
  }

  /** Has what reports of a device that stands so need. */
  async ready(device: Device): Promise<void> {
    if (needsMemo(this.bundle, device)) this.#memoOf ??= (await import("../more.js")).memoOf;
  }

  /** Whether the operator has stopped what would be sent of a stream in an epoch. */
  isStopped({ stream, epoch }: { stream: string; epoch: number }): boolean {
    const metric = this.bundle.streams.get(stream)?.[0];
    return !!metric && !samplingOf(metric, epoch, this.#notice);
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
    for (const one of this.#drawn) {
      accounts = opened({ ...device, accounts }, one.metric);
      accounts = entered(accounts, one, this.bundle.caps);
    }
    this.#device = { ...device, accounts };
    this.#usable = true;
  }

  /** Nothing may be drawn until the state can be written again. */
  cannotKeep(): void {
    this.#usable = false;
  }

  /** Stops or goes on; stopping forgets what was drawn. */
  switch(on: boolean): void {
    this.#off = !on;
    if (!on) this.#drawn = [];
  }

  /**
   * Randomizes one value and holds the payload.
   *
   * @throws UnknownMetric the bundle has no such metric, or one that this version cannot report.
   * @throws ValueOutOfDomain the metric has no such value; the message does not show it.
   */
  report(name: string, value: unknown): Outcome {
    const metric = metricOf(this.bundle, name);
    const code = metric.code(value);
    const { generation, preference, maxLocal } = this.#device.consent;
    if (this.#off || !isOn(generation)) return "disabled";
    const most = Math.min(this.maxEpsilon, preference ?? Infinity);
    const local = Math.min(this.maxEpsilon, maxLocal ?? Infinity);
    const stream = streamWithin(metric, most, local);
    if (!stream) return "declined";
    if (!this.#usable) return "no_state";
    const now = this.now();
    if (now >= metric.expires) return "expired";
    const epoch = epochAt(now, metric.epoch);
    const key = keyAt(this.bundle.keys, epochStart(epoch, metric.epoch));
    if (!halfOf(key, metric.kem)) return "no_key";
    if (this.#drawn.length >= MOST_HELD) return "overflowed";
    return this.#draw(metric, stream, epoch, code, now);
  }

  #draw(metric: Metric, stream: Stream, epoch: number, code: Coded, now: number): Outcome {
    const memo = this.#memoOf?.(this.#device.secret, stream.name);
    const chance = samplingOf(metric, epoch, this.#notice);
    if (!chance) return "stopped";
    if (chance < 1) {
      // A coin of the device's own, whatever the value, and the same whatever the chance.
      const epochBytes = packed(BigInt(epoch), EPOCH_BYTES).reverse();
      const coins = memo?.coins(joined(purpose("sampling"), epochBytes));
      if (!coins?.chance(atMost(exact(chance)))) return "not_sampled";
    }
    const { randomizer } = stream;
    const tag = randomizer.permanentKey && memo ? memo.tag(randomizer.permanentKey(code)) : "";
    const charge = { metric, stream, epoch, tag };
    // PRIVACY: the ledger is asked before any coin is drawn.
    const accounts = charged(opened(this.#device, metric), charge, this.bundle.caps);
    if (typeof accounts === "string") return accounts;
    this.#device = { ...this.#device, accounts };
    const payload = randomizer.randomize(code, this.coins, memo);
    const late = epochStart(epoch + 1, metric.epoch) + graceSeconds(metric.epoch);
    const { generation } = this.#device.consent;
    this.#drawn.push({ ...charge, generation, payload, made: now, late });
    return "queued";
  }

  /** The operator's notice, if it is of who signed this bundle. */
  get #notice(): Notice | null {
    const { notice } = this.#device;
    return notice?.line.includes(signerOf(this.bundle)) ? notice : null;
  }
}
