/**
 * The state: a device's document and its outbox, in storage, changed by whole steps.
 *
 * Every step is one transaction, alone among all tabs, workers and processes, and begins with what the
 * witness knows. PRIVACY: the witness is told before anything leaves.
 */
import type { Caps } from "../catalog/caps.js";
import { number, table, text } from "../catalog/json.js";
import type { Metric, Stream } from "../catalog/metric.js";
import { StateUnusable } from "../errors.js";
import { load } from "../loading.js";
import { isOn } from "./consent.js";
import { withCounts, loadDevice, newDevice, witnessed, type Device } from "./device.js";
import type { Diagnostics } from "./diagnostics.js";
import { accountsOf } from "./account.js";
import { charged } from "./ledger.js";
import type { TokenStore } from "./token_store.js";
import { isTrusted } from "./trust.js";
import type { PastReport, Rows, Storage, StoredReport } from "./storage.js";

/** A payload as report() drew it, under a number of consent. */
export interface SealedPayload {
  readonly metric: Metric;
  readonly stream: Stream;
  readonly epoch: number;
  readonly tag: string;
  readonly generation: number;
  readonly report: StoredReport;
  /** Fillers and dummies that leave if it does. */
  readonly beside: readonly StoredReport[];
  readonly filler: boolean;
}

/** A payload that was given up: of which stream, and why. */
export interface DroppedReport {
  readonly stream: string;
  readonly reason: string;
}

const OPERATOR_CHANGED = "operator_changed";
/** The fate of a report that the shuffler took. */
export const SENT = "sent";
/** The fate of what waited when the operator stopped its metric. */
export const STOPPED = "stopped";
/** What the shuffler says of a token that went with another report. */
export const SPENT = "refused_token_spent";
/** What it says of none, or of one that it does not know. */
export const NO_TOKEN = "refused_no_token";
/** The fate of what was drawn or waited when reporting was switched off. */
export const DISABLED = "disabled";

const MAX_REPORTS = 10_000;
const MAX_BYTES = 16 << 20;
const CLAIMED_SECONDS = 5; // as in Python

/** Work of one step: what becomes of the device, and what the caller is told. */
type Work<T> = (rows: Rows, device: Device) => Promise<readonly [Device, T]>;

/**
 * One device's, over a storage. Its methods reject with StateUnusable: then nothing has changed. Of what
 * is given up `diagnostics` is told once that is kept.
 */
export class State {
  #isAdmitted = false;
  #mergedWithWitness: typeof import("./witness_merge.js").mergedWithWitness | undefined;

  constructor(
    readonly storage: Storage,
    readonly caps: Caps,
    readonly now: () => number,
    readonly diagnostics: Diagnostics,
    /** The device once it takes this client's bundle. @throws BundleRefused it does not. */
    readonly admit: (device: Device) => Device,
    /** Who signed this client's bundle, in base64. */
    readonly operator: string,
  ) {}

  /** The device as it is now. @throws BundleRefused it does not take this client's bundle, the first time. */
  async device(): Promise<Device> {
    const admit = this.#isAdmitted ? (device: Device) => device : this.admit;
    const device = await this.change(admit, { reason: OPERATOR_CHANGED });
    this.#isAdmitted = true;
    return device;
  }

  /**
   * Changes the device, and lets what waits go, for a reason, if consent has changed. insists: as of
   * `Storage.alone`.
   */
  async change(
    changeDevice: (device: Device) => Device,
    { reason = DISABLED, insists = false } = {},
  ): Promise<Device> {
    const { device, result: dropped } = await this.step(
      async (rows, device) => {
        const changed = changeDevice(device);
        if (changed === device) return [device, []];
        const { generation } = changed.consent;
        const isRevoked = generation !== device.consent.generation;
        // PRIVACY: before the commit, so that no page sends what this change deletes.
        if (isRevoked) this.storage.announce?.(generation);
        const purged = isRevoked ? await purge(rows, reason) : [];
        return [{ ...changed, counts: withCounts(changed.counts, purged.map(reasonOf)) }, purged];
      },
      { insists },
    );
    this.diagnostics.drop(dropped);
    return device;
  }

  /**
   * Charges and keeps payloads; says which were given up.
   *
   * PRIVACY: the last word. report() has asked a copy of the ledger; between then and now another tab
   * may have reported, or the person may have said no.
   */
  async enter(
    drawn: readonly SealedPayload[],
  ): Promise<{ device: Device; dropped: DroppedReport[] }> {
    const { device, result: unsent } = await this.step(
      async (rows, device) => {
        let { accounts } = device;
        const dropped: DroppedReport[] = [];
        for (const drawing of drawn) {
          const fate = this.#admit(drawing, { ...device, accounts });
          if (typeof fate === "string") {
            dropped.push({ stream: drawing.report.stream, reason: fate });
          } else {
            accounts = fate;
            for (const report of [drawing.report, ...drawing.beside]) await rows.keep(report);
          }
        }
        dropped.push(...(await overflow(rows)));
        return [
          { ...device, accounts, counts: withCounts(device.counts, dropped.map(reasonOf)) },
          dropped,
        ];
      },
      { strict: false },
    );
    this.diagnostics.drop(unsent);
    return { device, dropped: unsent };
  }

  /**
   * Reports to send now, in random order, ours alone for a while; those now too late are given up.
   * isHeld: of those that wait for the end of their epoch. give: each its token, where they need any.
   *
   * PRIVACY: the witness knows what was spent on them before this returns.
   */
  async take(
    maxReports: number,
    maxBytes: number,
    isHeld: (report: StoredReport) => boolean,
    give?: TokenStore["give"],
  ): Promise<StoredReport[]> {
    const { result } = await this.step(async (rows, device) => {
      const now = this.now();
      // PRIVACY: reports that another operator's bundle asked for are sent by its pages alone.
      const isOurs = isOn(device.consent.generation) && isTrusted(device, this.operator);
      const waiting = isOurs ? await rows.waiting() : [];
      const expired = waiting.filter((report) => report.late <= now);
      for (const report of expired) await settle(rows, report, "expired");
      const unclaimed = waiting.filter(
        (report) => report.late > now && !isClaimed(report, now) && !isHeld(report),
      );
      const candidates = fitting(shuffled(unclaimed), maxBytes);
      const [updated, reports] = give?.(device, candidates, maxReports) ?? [
        device,
        candidates.slice(0, maxReports),
      ];
      for (const report of reports) await rows.keep({ ...report, claimed: now + CLAIMED_SECONDS });
      const dropped = givenUp(expired, "expired");
      if (!dropped.length) return [updated, { reports, dropped }];
      const counts = withCounts(updated.counts, dropped.map(reasonOf));
      return [
        { ...updated, counts },
        { reports, dropped },
      ];
    });
    this.diagnostics.drop(result.dropped);
    return result.reports;
  }

  /** Reports that were taken have met their fate, or are free again: null. */
  async record(fates: ReadonlyMap<number, string | null>): Promise<void> {
    const { result: discarded } = await this.step(
      async (rows, device) => {
        const dropped: DroppedReport[] = [];
        for (const report of await rows.waiting()) {
          const fate = fates.get(report.id ?? NaN);
          if (fate === undefined) continue;
          if (isFree(fate)) {
            const { token, ...bare } = report;
            await rows.keep({ ...bare, ...(token && fate !== SPENT ? { token } : {}), claimed: 0 });
            continue;
          }
          await settle(rows, report, fate);
          if (fate !== SENT) dropped.push({ stream: report.stream, reason: fate });
        }
        if (!dropped.length) return [device, dropped];
        return [{ ...device, counts: withCounts(device.counts, dropped.map(reasonOf)) }, dropped];
      },
      { strict: false },
    );
    this.diagnostics.drop(discarded);
  }

  /** The device, what waits to be sent, and what has met its fate. */
  async all(): Promise<{ device: Device; waiting: StoredReport[]; past: PastReport[] }> {
    const { device, result } = await this.step(async (rows, device) => {
      return [device, { waiting: await rows.waiting(), past: await rows.past() }];
    });
    return { device, ...result };
  }

  #admit(payload: SealedPayload, device: Device) {
    if (payload.generation !== device.consent.generation) return DISABLED;
    if (!isTrusted(device, this.operator)) return OPERATOR_CHANGED;
    return charged(accountsOf(device, payload.metric), payload, this.caps);
  }

  /**
   * One whole step. strict: that the witness cannot be told is a failure, and not only to be tried again. insists: as of
   * `Storage.alone`.
   */
  step<T>(
    work: Work<T>,
    { strict = true, insists = false } = {},
  ): Promise<{ device: Device; result: T }> {
    return this.storage.alone(async () => {
      const witness = await this.storage.readWitness();
      let result = await this.#changed(work, witness);
      if (!result) {
        this.#mergedWithWitness = (await load("more")).mergedWithWitness;
        result = await this.#changed(work, witness);
      }
      if (!result) throw new StateUnusable("the state of this device cannot be read");
      const current = witnessed(result.device);
      if (current !== witness) {
        try {
          await this.storage.writeWitness(current);
        } catch (error) {
          if (strict) throw error;
        }
      }
      return result;
    }, insists);
  }

  /** One transaction; null, and nothing changed, where what regains a lost state is to be had first. */
  #changed<T>(
    work: Work<T>,
    witness: string | null,
  ): Promise<{ device: Device; result: T } | null> {
    return this.storage.transaction(async (rows) => {
      const document = await rows.device();
      const storedDevice = deviceFrom(document);
      let currentDevice = storedDevice;
      if (isAhead(witness, storedDevice)) {
        if (!this.#mergedWithWitness) return null;
        currentDevice = this.#mergedWithWitness(storedDevice, witness);
      }
      const [changed, result] = await work(rows, currentDevice);
      if (changed === storedDevice && document !== undefined && storedDevice.commits) {
        return { device: changed, result };
      }
      const device = { ...changed, commits: changed.commits + 1 };
      await rows.keepDevice(device);
      return { device, result };
    });
  }
}

/**
 * Whether a page or process is sending a report. A claim far in the future is ignored: the clock
 * was set back.
 */
export function isClaimed({ claimed }: StoredReport, now: number): boolean {
  return claimed > now && claimed <= now + CLAIMED_SECONDS;
}

/** Whether a report waits on: of what is said of its token another may be the end. */
export function isFree(fate: string | null): fate is null | typeof SPENT | typeof NO_TOKEN {
  return fate === null || fate === SPENT || fate === NO_TOKEN;
}

/** @throws StateUnusable it is none of this version. */
function deviceFrom(document: unknown): Device {
  try {
    return document === undefined ? newDevice() : loadDevice(document);
  } catch (cause) {
    throw new StateUnusable("the state of this device cannot be read", { cause });
  }
}

/** Whether the witness knows of more than a device, or of another one in its place. */
function isAhead(witness: string | null, { state, commits }: Device): witness is string {
  if (witness === null) return false;
  try {
    const document = table(JSON.parse(witness));
    return text(document["state"]) !== state || number(document["commits"]) > commits;
  } catch {
    return true;
  }
}

async function purge(rows: Rows, reason: string): Promise<DroppedReport[]> {
  const waiting = await rows.waiting();
  for (const report of waiting) await settle(rows, report, reason);
  return givenUp(waiting, reason);
}

function givenUp(reports: readonly StoredReport[], reason: string): DroppedReport[] {
  return reports.map(({ stream }) => ({ stream, reason }));
}

async function settle(rows: Rows, report: StoredReport, fate: string): Promise<void> {
  const { id, stream, epoch, payload, made } = report;
  if (id !== undefined) await rows.remove(id);
  await rows.remember({ stream, epoch, payload, made, fate });
}

function reasonOf({ reason }: DroppedReport): string {
  return reason;
}

/** Gives up the oldest reports first. */
async function overflow(rows: Rows): Promise<DroppedReport[]> {
  const waiting = await rows.waiting();
  let size = waiting.reduce((sum, report) => sum + report.sealed.length, 0);
  const dropped: DroppedReport[] = [];
  for (const [index, report] of waiting.entries()) {
    if (waiting.length - index <= MAX_REPORTS && size <= MAX_BYTES) break;
    size -= report.sealed.length;
    await settle(rows, report, "outbox_full");
    dropped.push({ stream: report.stream, reason: "outbox_full" });
  }
  return dropped;
}

/** As many of the first as fit one message; a long one goes alone. */
function fitting(reports: StoredReport[], maxBytes: number): StoredReport[] {
  let size = 0;
  const end = reports.findIndex((report) => (size += report.sealed.length) > maxBytes);
  return end < 0 ? reports : reports.slice(0, Math.max(1, end));
}

/** The same in an order that says nothing: Fisher and Yates, by the system's coins. */
export function shuffled<T>(items: readonly T[]): T[] {
  const order = crypto.getRandomValues(new Uint32Array(items.length));
  return items
    .map((value, index) => [order[index] ?? 0, value] as const)
    .sort(([first], [second]) => first - second)
    .map(([, value]) => value);
}
