/**
 * The sender: seals what was drawn, enters it in the outbox, submits it; never once as two.
 *
 * A report is sealed once, as it enters the outbox: every attempt to send it is the same bytes, also
 * after a reload, and the shuffler knows a resend by that.
 */
import { toText } from "../catalog/encoding.js";
import { halfOf, keyAt, type Bundle } from "../catalog/bundle.js";
import { epochStart } from "../catalog/epochs.js";
import type { Stream } from "../catalog/metric.js";
import { GivenUp, NotLoaded, tooLate, TryAgain } from "../errors.js";
import { load } from "../loading.js";
import { later, within } from "../within.js";
import { SystemBits } from "../mechanisms/bits.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { seal, sealInfo } from "../transport/sealing.js";
import { meaningOf, noticeIn, requestOf, type Answer } from "../transport/submission.js";
import type { Diagnostics } from "./diagnostics.js";
import type { Purse } from "./purse.js";
import type { Payload, Reporter } from "./reporter.js";
import { isFree, SENT, shuffled, STOPPED, type Drawn, type Dropped, type State } from "./state.js";
import type { StoredReport } from "./storage.js";
import { LAST_BYTES, type Transport } from "./transport.js";
import { turns } from "./turns.js";

const BATCH = 500;
const PROBE = 20; // after a failure: enough to see whether the shuffler is there again
const BATCH_BYTES = 1 << 20;
const CALL_SECONDS = 10;
const NOTHING = new Uint8Array();
const AT_ONCE = 4; // sealed in one task: some milliseconds, on a phone too

/**
 * What came of an attempt. "empty": nothing is left that it may send, or its time was over before its
 * turn came; "sent": there may be more; else a failure.
 */
export type Attempt = "empty" | "sent" | TryAgain;

/** Moves what a reporter drew into the state, and from there into a transport. */
export class Sender {
  /** Of submissions, in a row. */
  failures = 0;
  /** Why the last request did not get through, to the shuffler or an issuer; "" if it did. */
  reason = "";
  // What is reported while a submission is under way is kept at once.
  readonly #enters = turns();
  readonly #sends = turns();
  #stopped = false;
  #call: AbortController | undefined;
  #lastNotice = ""; // the notice that was looked at last
  /** Who is told that something was kept, or has met its fate. */
  readonly watching = new Set<() => void>();
  // What this page has entered and not heard of yet: what it can still send as it goes away.
  #unheard = new Map<string, StoredReport>();

  constructor(
    readonly reporter: Reporter,
    readonly state: State,
    readonly bundle: Bundle,
    readonly transport: Transport,
    readonly diagnostics: Diagnostics,
    readonly purse: Purse | null,
  ) {}

  /**
   * Seals and keeps what was drawn; all of it or nothing.
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
      // Kept before anything that the device says can leave.
      const changeDevice = this.reporter.running();
      if (changeDevice) await this.reporter.stand(await this.state.change(changeDevice));
      this.reporter.cover();
      const payloads = [...this.reporter.drawn];
      if (!payloads.length) return;
      const sealedPayloads: Drawn[] = [];
      const lost: Dropped[] = [];
      for (const [index, payload] of payloads.entries()) {
        // Many are not even begun in the task that reported them: what a page does there is its own.
        if (index % AT_ONCE === 0 && payloads.length > AT_ONCE) await nextTask();
        const sealedPayload = await this.#sealed(payload);
        if (sealedPayload) sealedPayloads.push(sealedPayload);
        else lost.push({ stream: payload.named, reason: "no_key" });
      }
      // Who stops reporting in the meantime takes what was drawn along.
      if (this.reporter.isOff) return;
      const { device, dropped } = await this.state.enter(sealedPayloads);
      await this.reporter.entered(payloads.length, device);
      this.diagnostics.drop(lost);
      for (const stored of sealedPayloads.flatMap(({ report, beside: dummies }) => [
        report,
        ...dummies,
      ])) {
        this.purse?.needs(stored);
        if (!dropped.length) this.#unheard.set(keyOf(stored), stored);
      }
      this.#tell();
    });
  }

  /**
   * Submits once. until: when its time is over, as performance.now() has it; what is under way then is
   * sent again, as the same bytes.
   *
   * @throws StateUnusable nothing was sent, or the shuffler's answer could not be kept.
   */
  attempt(until = Infinity): Promise<Attempt> {
    return this.#sends(async () => {
      if (this.#isOver(until) || this.reporter.local) return "empty";
      const reports = await this.state.take(
        this.failures ? PROBE : BATCH,
        BATCH_BYTES,
        (report) => this.reporter.isHeld(report),
        this.purse?.give.bind(this.purse),
      );
      if (!reports.length) return "empty";
      const stopped = reports.filter((report) => this.reporter.isStopped(report));
      const { fates, failure } = await this.#submit(
        reports.filter((report) => !stopped.includes(report)),
        until,
      );
      for (const { id } of stopped) fates.set(id ?? NaN, STOPPED);
      for (const report of reports) {
        const id = report.id ?? NaN;
        if (!isFree(fates.get(id) ?? null)) this.#unheard.delete(keyOf(report));
        else if (!fates.has(id)) fates.set(id, null);
      }
      await this.state.record(fates); // if this fails they are sent again, as the same bytes
      this.#tell();
      this.failures = failure ? this.failures + 1 : 0;
      if (!failure) return "sent";
      this.diagnostics.warnOnce(failure.reason, `reports wait: ${failure.message}`);
      return failure;
    });
  }

  /** Sends what it can as the page goes away; whoever comes next sends it again, as the same bytes. */
  last(): void {
    // One that has no token yet cannot go.
    if (this.#stopped || this.purse || !this.transport.last) return;
    const framed: Bytes[] = [];
    let size = 0;
    // PRIVACY: in an order that does not say which of them are fillers or dummies.
    for (const report of shuffled([...this.#unheard.values()])) {
      if (this.reporter.isStopped(report) || this.reporter.isHeld(report)) continue;
      const request = requestOf([report]);
      size += request.length;
      if (size > LAST_BYTES) break;
      framed.push(request);
    }
    // Requests one after another are one request of all their reports.
    if (framed.length) this.transport.last(concatenated(...framed));
  }

  /** Asks for the state of models, by a submission without a report, where examples wait for it. */
  fetchModels(until = Infinity): Promise<void> {
    return this.#sends(async () => {
      const { learner } = this.reporter;
      if (this.#isOver(until) || !learner?.awaits) return;
      await learner.fetch(async () => {
        const answer = await this.#post(requestOf([]), until);
        await this.#hear(noticeIn(answer));
        return answer;
      });
    });
  }

  /** Asks for the tokens that are due; whether any came. @throws StateUnusable they cannot be kept. */
  async fetchTokens(until = Infinity): Promise<boolean> {
    if (!this.purse || this.#isOver(until) || !this.reporter.isOn) return false;
    const hasNew = await this.purse.fetch(this.reporter.device.secret, until);
    this.reason ||= this.purse.reason;
    return hasNew;
  }

  /** How long until tokens are due, in seconds; Infinity where reports go without. */
  secondsToTokens(): number {
    return this.purse?.secondsToNext(this.reporter.device.secret) ?? Infinity;
  }

  /** Knows what a page before has left. @throws StateUnusable it cannot be read. */
  async ready(): Promise<void> {
    const { waiting } = this.purse ? await this.state.all() : { waiting: [] };
    for (const report of waiting) this.purse?.needs(report);
  }

  /** Submits nothing more, and ends what is being submitted. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#call?.abort();
    this.#unheard.clear();
    const doNothing = () => Promise.resolve();
    await this.#sends(doNothing);
    await this.#enters(doNothing);
  }

  /** Lets go of what was drawn and is not entered, and says of what: nothing of it is being entered. */
  discard(): Promise<string[]> {
    return this.#enters(() => Promise.resolve(this.reporter.forget()));
  }

  /** Submits again. */
  goOn(): void {
    this.#stopped = false;
  }

  async #sealed(pending: Payload): Promise<Drawn | null> {
    const { metric, stream, named, epoch, payload, made, late } = pending;
    const key = keyAt(this.bundle.keys, epochStart(epoch, metric.epoch));
    const half = halfOf(key, metric.kem);
    if (!key || !half) return null;
    const entry = async (own: Stream, name: string, encoded: Bytes, copy = encoded) => {
      // A filler is as long as a report: who has no opening key cannot tell the one from the other.
      const plain = encoded.length ? encoded : new Uint8Array(own.randomizer.payloadBytes);
      const info = sealInfo(name, epoch, encoded.length ? "report" : "filler");
      const sealedBytes = await seal(plain, half, info, metric.kem);
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
    const others = cover && !development ? metric.streams.filter((other) => other !== stream) : [];
    return {
      ...pending,
      report: await entry(stream, named, payload),
      beside: await Promise.all([
        ...others.map((other) => entry(other, other.name, NOTHING)),
        // A dummy is kept as a filler is: the device, too, knows no more which of them it was.
        ...(metric.dummies?.(new SystemBits()) ?? []).map((dummy) =>
          entry(stream, named, dummy, NOTHING),
        ),
      ]),
    };
  }

  /**
   * What became of reports; of those it does not name nothing is known, by the failure.
   *
   * What is refused as a whole is sent by halves: one that can never be taken takes no other along.
   */
  async #submit(reports: readonly StoredReport[], until: number) {
    const fates = new Map<number, string | null>();
    const parts: (readonly StoredReport[])[] = reports.length ? [reports] : [];
    let reason: string | undefined;
    for (let part = parts.pop(); part; part = parts.pop()) {
      if (this.#stopped) return { fates, failure: new TryAgain("stopped") };
      try {
        const { purse } = this;
        const answer = await this.#post(
          requestOf(purse ? part.map((report) => purse.marked(report)) : part),
          until,
        );
        await this.#hear(noticeIn(answer));
        const results = meaningOf(answer, part.length);
        for (const [index, { id }] of part.entries()) fates.set(id ?? NaN, results[index] ?? SENT);
        reason ??= results.find((result) => result !== null && isFree(result)) ?? undefined;
      } catch (error) {
        if (error instanceof TryAgain) return { fates, failure: error };
        if (!(error instanceof GivenUp)) throw error;
        const half = Math.ceil(part.length / 2);
        if (part.length > 1) parts.push(part.slice(half), part.slice(0, half));
        else fates.set(part[0]?.id ?? NaN, `rejected_${error.reason}`);
      }
    }
    return { fates, failure: reason === undefined ? null : new TryAgain(reason) };
  }

  #isOver(until: number): boolean {
    return this.#stopped || performance.now() >= until;
  }

  async #post(body: Bytes, until: number): Promise<Answer> {
    const call = (this.#call = new AbortController());
    const timer = later(Math.min(CALL_SECONDS, (until - performance.now()) / 1000), () => {
      call.abort();
    });
    try {
      // The transport may be an app's, which need not know of a signal.
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

  /** Keeps what the operator lets everybody know; what cannot be kept is heard again. */
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

  /** Each in a task of its own: what one of them throws is its own fault. */
  #tell(): void {
    for (const listener of this.watching) queueMicrotask(listener);
  }
}

/** Once whatever else a page has to do was done; unlike timers it is not put off in hidden pages. */
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

/** Which report it is: its seal is drawn once. */
function keyOf(report: StoredReport): string {
  return report.sealed.slice(0, 16).join();
}
