/**
 * The sender: seals payloads, stores them in the outbox and submits them; no report counts twice.
 *
 * A report is sealed once, when it enters the outbox: every attempt sends the same bytes, also
 * after a reload, so the shuffler recognizes a resend.
 */
import { toText } from "../catalog/encoding.js";
import { halfOf, keyAt, type Bundle } from "../catalog/bundle.js";
import { epochStart } from "../catalog/epochs.js";
import type { Stream } from "../catalog/metric.js";
import { GivenUp, NotLoaded, tooLate, TryAgain } from "../errors.js";
import { load } from "../loading.js";
import { callLater, within } from "../time_limits.js";
import { SystemBits } from "../mechanisms/random_bits.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { seal, sealInfo } from "../transport/sealing.js";
import { meaningOf, noticeIn, requestOf, type Answer } from "../transport/submission.js";
import type { Diagnostics } from "./diagnostics.js";
import type { TokenStore } from "./token_store.js";
import type { Payload, Reporter } from "./reporter.js";
import {
  isFree,
  SENT,
  shuffled,
  STOPPED,
  type SealedPayload,
  type DroppedReport,
  type State,
} from "./state.js";
import type { StoredReport } from "./storage.js";
import { LAST_BYTES, type Transport } from "./transport.js";
import { workQueue } from "./work_queue.js";

const BATCH = 500;
const PROBE = 20; // after a failure: enough to see whether the shuffler is available again
const BATCH_BYTES = 1 << 20;
const CALL_SECONDS = 10;
const NOTHING = new Uint8Array();
const AT_ONCE = 4; // sealed in one task: some milliseconds, on a phone too

/**
 * The result of an attempt. "empty": nothing is left to send, or the time was over before its turn;
 * "sent": there may be more; otherwise a failure.
 */
export type Attempt = "empty" | "sent" | TryAgain;

/** Moves a reporter's payloads into the state, and from there to a transport. */
export class Sender {
  /** The number of consecutive failed submissions. */
  failures = 0;
  /** Why the last request to the shuffler or issuer failed; "" if it succeeded. */
  reason = "";
  // Reports are stored at once, also while a submission is under way.
  readonly #enters = workQueue();
  readonly #sends = workQueue();
  #stopped = false;
  #call: AbortController | undefined;
  #lastNotice = ""; // the last notice that was checked
  /** Listeners that are called after a report was stored or settled. */
  readonly watching = new Set<() => void>();
  // Reports that this page has stored and that are not settled: it can still send them when it goes
  // away, if consent has the same number.
  #unheard = new Map<string, [stored: StoredReport, generation: number]>();

  constructor(
    readonly reporter: Reporter,
    readonly state: State,
    readonly bundle: Bundle,
    readonly transport: Transport,
    readonly diagnostics: Diagnostics,
    readonly tokenStore: TokenStore | null,
  ) {}

  /**
   * Seals and stores the drawn payloads, all or none.
   *
   * @throws StateUnusable nothing was lost; try again.
   */
  enter(): Promise<void> {
    return this.#enters(async () => {
      if (!this.reporter.canKeep) await this.reporter.stand(await this.state.device());
      const { local } = this.reporter;
      if (local) {
        await this.reporter.stand(await local.keep(this.state));
        return;
      }
      // Stored before any report of the device can leave.
      const changeDevice = this.reporter.running();
      if (changeDevice) await this.reporter.stand(await this.state.change(changeDevice));
      this.reporter.cover();
      const payloads = [...this.reporter.drawn];
      if (!payloads.length) return;
      const sealedPayloads: SealedPayload[] = [];
      const unsealed: DroppedReport[] = [];
      for (const [index, payload] of payloads.entries()) {
        // If there are many, sealing starts in a later task, so that the page's own task is not
        // delayed.
        if (index % AT_ONCE === 0 && payloads.length > AT_ONCE) await nextTask();
        const sealedPayload = await this.#sealed(payload);
        if (sealedPayload) sealedPayloads.push(sealedPayload);
        else unsealed.push({ stream: payload.named, reason: "no_key" });
      }
      // An opt-out in the meantime discards the drawn payloads.
      if (this.reporter.isOff) return;
      const { device, dropped } = await this.state.enter(sealedPayloads);
      await this.reporter.entered(payloads.length, device);
      this.diagnostics.drop(unsealed);
      for (const { report, beside: dummies, generation } of sealedPayloads)
        for (const storedReport of [report, ...dummies]) {
          this.tokenStore?.needs(storedReport);
          if (!dropped.length) this.#unheard.set(keyOf(storedReport), [storedReport, generation]);
        }
      this.#tell();
    });
  }

  /**
   * Submits once. deadline: the end of the available time, as of performance.now(); an unfinished
   * submission is repeated with the same bytes.
   *
   * @throws StateUnusable nothing was sent, or the shuffler's answer could not be stored.
   */
  attempt(deadline = Infinity): Promise<Attempt> {
    return this.#sends(async () => {
      if (this.#isOver(deadline) || this.reporter.local) return "empty";
      const reports = await this.state.take(
        this.failures ? PROBE : BATCH,
        BATCH_BYTES,
        (report) => this.reporter.isHeld(report),
        this.tokenStore?.give.bind(this.tokenStore),
      );
      if (!reports.length) return "empty";
      const stopped = reports.filter((report) => this.reporter.isStopped(report));
      const { fates, failure } = await this.#submit(
        reports.filter((report) => !stopped.includes(report)),
        deadline,
      );
      for (const { id } of stopped) fates.set(id ?? NaN, STOPPED);
      for (const report of reports) {
        const id = report.id ?? NaN;
        if (!isFree(fates.get(id) ?? null)) this.#unheard.delete(keyOf(report));
        else if (!fates.has(id)) fates.set(id, null);
      }
      await this.state.record(fates); // if this fails, the same bytes are sent again
      this.#tell();
      this.failures = failure ? this.failures + 1 : 0;
      if (!failure) return "sent";
      this.diagnostics.warnOnce(failure.reason, `reports wait: ${failure.message}`);
      return failure;
    });
  }

  /** Sends what it can while the page goes away; the next page sends the same bytes again. */
  last(): void {
    // A report without a token cannot be sent.
    if (this.#stopped || this.tokenStore || !this.transport.last) return;
    const framed: Bytes[] = [];
    let size = 0;
    // PRIVACY: a refusal in another tab has deleted what this page stored before it.
    const current = +(this.state.storage.announced?.() ?? this.reporter.device.consent.generation);
    // PRIVACY: the order does not reveal which of them are fillers or dummies.
    for (const [report, generation] of shuffled([...this.#unheard.values()])) {
      if (generation !== current) continue;
      if (this.reporter.isStopped(report) || this.reporter.isHeld(report)) continue;
      const request = requestOf([report]);
      size += request.length;
      if (size > LAST_BYTES) break;
      framed.push(request);
    }
    // Concatenated requests are one request with all reports (protobuf).
    if (framed.length) this.transport.last(concatenated(...framed));
  }

  /** Requests the state of models by a submission without a report, if examples wait for it. */
  fetchModels(deadline = Infinity): Promise<void> {
    return this.#sends(async () => {
      const { learner } = this.reporter;
      if (this.#isOver(deadline) || !learner?.awaits) return;
      await learner.fetch(async () => {
        const answer = await this.#post(requestOf([]), deadline);
        await this.#hear(noticeIn(answer));
        return answer;
      });
    });
  }

  /**
   * Requests due tokens; resolves to true if there are new ones. @throws StateUnusable they cannot
   * be stored.
   */
  async fetchTokens(deadline = Infinity): Promise<boolean> {
    if (!this.tokenStore || this.#isOver(deadline) || !this.reporter.isOn) return false;
    const hasNew = await this.tokenStore.fetch(this.reporter.device.secret, deadline);
    this.reason ||= this.tokenStore.reason;
    return hasNew;
  }

  /** The seconds until tokens are due; Infinity if reports need none. */
  secondsToTokens(): number {
    return this.tokenStore?.secondsToNext(this.reporter.device.secret) ?? Infinity;
  }

  /** Reads what an earlier page left. @throws StateUnusable it cannot be read. */
  async ready(): Promise<void> {
    const { waiting } = this.tokenStore ? await this.state.all() : { waiting: [] };
    for (const report of waiting) this.tokenStore?.needs(report);
  }

  /** Stops submitting, and aborts the current submission. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#call?.abort();
    this.#unheard.clear();
    const doNothing = () => Promise.resolve();
    await this.#sends(doNothing);
    await this.#enters(doNothing);
  }

  /** Drops payloads that are not stored and returns their streams; none of them is being stored. */
  discard(): Promise<string[]> {
    return this.#enters(() => Promise.resolve(this.reporter.forget()));
  }

  /** Submits again. */
  goOn(): void {
    this.#stopped = false;
  }

  async #sealed(queued: Payload): Promise<SealedPayload | null> {
    const { metric, stream, named, epoch, payload, made, late } = queued;
    const key = keyAt(this.bundle.keys, epochStart(epoch, metric.epoch));
    const publicKey = halfOf(key, metric.kem);
    if (!key || !publicKey) return null;
    const entry = async (target: Stream, name: string, content: Bytes, copy = content) => {
      // A filler is as long as a report: without the opening key nobody can distinguish them.
      const plaintext = content.length ? content : new Uint8Array(target.randomizer.payloadBytes);
      const info = sealInfo(name, epoch, content.length ? "report" : "filler");
      const sealedBytes = await seal(plaintext, publicKey, info, metric.kem);
      return {
        stream: name,
        epoch,
        keyId: key.id,
        sealed: sealedBytes,
        payload: copy,
        made,
        late,
        claimed: 0,
      };
    };
    const { cover, development } = this.bundle;
    const otherStreams =
      cover && !development ? metric.streams.filter((other) => other !== stream) : [];
    return {
      ...queued,
      report: await entry(stream, named, payload),
      beside: await Promise.all([
        ...otherStreams.map((other) => entry(other, other.name, NOTHING)),
        // A dummy is stored like a filler, so that even the device cannot identify it later.
        ...(metric.dummies?.(new SystemBits()) ?? []).map((dummy) =>
          entry(stream, named, dummy, NOTHING),
        ),
      ]),
    };
  }

  /**
   * The fates of reports; the fate of reports that are missing here is unknown because of the
   * failure.
   *
   * A request that is refused as a whole is sent again in halves, so that one invalid report does
   * not affect others.
   */
  async #submit(reports: readonly StoredReport[], deadline: number) {
    const fates = new Map<number, string | null>();
    const parts: (readonly StoredReport[])[] = reports.length ? [reports] : [];
    let reason: string | undefined;
    for (let part = parts.pop(); part; part = parts.pop()) {
      if (this.#stopped) return { fates, failure: new TryAgain("stopped") };
      try {
        const { tokenStore } = this;
        const answer = await this.#post(
          requestOf(tokenStore ? part.map((report) => tokenStore.marked(report)) : part),
          deadline,
        );
        await this.#hear(noticeIn(answer));
        const results = meaningOf(answer, part.length);
        for (const [index, { id }] of part.entries()) fates.set(id ?? NaN, results[index] ?? SENT);
        reason ??= results.find((result) => result !== null && isFree(result)) ?? undefined;
      } catch (error) {
        if (error instanceof TryAgain) return { fates, failure: error };
        if (!(error instanceof GivenUp)) throw error;
        const middle = Math.ceil(part.length / 2);
        if (part.length > 1) parts.push(part.slice(middle), part.slice(0, middle));
        else fates.set(part[0]?.id ?? NaN, `rejected_${error.reason}`);
      }
    }
    return { fates, failure: reason === undefined ? null : new TryAgain(reason) };
  }

  #isOver(deadline: number): boolean {
    return this.#stopped || performance.now() >= deadline;
  }

  async #post(body: Bytes, deadline: number): Promise<Answer> {
    const call = (this.#call = new AbortController());
    const timer = callLater(Math.min(CALL_SECONDS, (deadline - performance.now()) / 1000), () => {
      call.abort();
    });
    try {
      // The app's own transport may ignore the signal.
      const answer = await within(call.signal, this.transport.post(body, call.signal), tooLate);
      this.reason = "";
      return answer;
    } catch (error) {
      if (error instanceof TryAgain) this.reason = error.reason;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#call = undefined;
    }
  }

  /** Stores the operator's notice; if that fails, the next answer brings it again. */
  async #hear(noticeBytes: Bytes): Promise<void> {
    const text = toText(noticeBytes);
    if (!text || text === this.#lastNotice) return;
    try {
      const { hear } = await load("more");
      if (await hear(this, noticeBytes)) this.#lastNotice = text;
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error;
      this.diagnostics.warnOnce("notice", `a notice is refused: ${error.message}`);
    }
  }

  /** Each listener runs in a separate task, so that its errors do not affect the sender. */
  #tell(): void {
    for (const listener of this.watching) queueMicrotask(listener);
  }
}

/** Resolves in a later task; unlike timers it is not delayed in hidden pages. */
export function nextTask(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** The identity of a report: its sealed bytes are unique. */
function keyOf(report: StoredReport): string {
  return report.sealed.slice(0, 16).join();
}
