/**
 * The purse: fetches tokens, and gives each report its own before it leaves.
 *
 * The tokens of an epoch are asked for at a moment of the epoch before that the device draws from its
 * secret; where there are none yet, when something is to be sent. Always for all streams of a length of
 * epoch, and as many as one device may ever send: so what is asked says nothing of what is. As
 * client/hubbub/client/delivery/purse.py.
 */
import type { Bundle } from "../catalog/bundle.js";
import { fromText, toText } from "../catalog/encoding.js";
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import type { Metric } from "../catalog/metric.js";
import { metricNameOf } from "../catalog/tiers.js";
import { BadParameter, tooLate, TryAgain, UNREACHABLE } from "../errors.js";
import { load } from "../loading.js";
import { after, within } from "../within.js";
import { pick } from "../mechanisms/bits.js";
import { issuedIn, tokenInfo, tokenOf, tokenRequest } from "../transport/issuing.js";
import type { AskIssuer, TokenIssuer } from "../transport/issuing.js";
import { blinded, outputsOf, type Blinded } from "../transport/poprf.js";
import type { TokenedReport } from "../transport/submission.js";
import type { Device } from "./device.js";
import type { Diagnostics } from "./diagnostics.js";
import { memoOf } from "./memo.js";
import { nextTask } from "./sender.js";
import type { State } from "./state.js";
import type { StoredReport } from "./storage.js";
import { turns } from "./turns.js";
import { soon } from "./waits.js";
import { EMPTY, type Token, type Wallet } from "./wallet.js";

const NONCE_BYTES = 16;
const KEY_LETTERS = 16; // of the issuer's public key, in base64: enough to tell it from another
const STEPS = 1 << 16; // of an epoch, of which one is drawn
const SHORTEST_SECONDS = 0.5;
const APART_SECONDS = 600; // between tries, at most
const CALL_SECONDS = 10;
const TEXT = new TextEncoder();

/** A length of epochs, and one of them. */
type Due = readonly [length: string, epoch: number];

/** One page's or process's way to tokens. */
export class Purse {
  /** Why the last request did not get through to the issuer; "" if it did. */
  reason = "";
  readonly #answered = new Set<string>();
  readonly #lacking = new Map<string, Due>();
  // Who asks meanwhile may have drawn what was not due before.
  readonly #fetches = turns();
  readonly #key: string;
  #failures = 0;
  #notBefore = 0;

  /** ask: takes a request to the issuer. */
  constructor(
    readonly bundle: Bundle,
    readonly issuer: TokenIssuer,
    readonly state: State,
    readonly ask: AskIssuer,
    readonly diagnostics: Diagnostics,
  ) {
    this.#key = toText(issuer.publicKey).slice(0, KEY_LETTERS);
  }

  /** This report needs a token, before it may leave. */
  needs({ stream, epoch, token }: Pick<StoredReport, "stream" | "epoch" | "token">): void {
    const metric = this.bundle.metrics.get(metricNameOf(stream));
    if (metric && !this.#isOurs(token))
      this.#lacking.set(periodOf(stream, epoch), [metric.epoch, epoch]);
  }

  /**
   * Each report its token, for good, until there are so many; those without are not among them.
   *
   * Of the state's own step: nothing is awaited.
   */
  give(
    device: Device,
    reports: readonly StoredReport[],
    maxReports: number,
  ): [Device, StoredReport[]] {
    const wallet = this.#open(device.wallet ?? EMPTY);
    const free: Record<string, readonly Token[]> = { ...wallet.free };
    const ready: StoredReport[] = [];
    for (const report of reports) {
      if (ready.length === maxReports) break;
      const kind = this.#kindOf(periodOf(report.stream, report.epoch));
      const boundToken = this.#isOurs(report.token) ? report.token : null;
      const [token, ...remaining] = boundToken ? [boundToken] : (free[kind] ?? []);
      if (!token) {
        this.needs(report);
        continue;
      }
      if (!boundToken) free[kind] = remaining;
      ready.push({ ...report, token });
    }
    return [{ ...device, wallet: { ...wallet, free } }, ready];
  }

  /** A report as it travels, with its token. */
  marked(report: StoredReport): TokenedReport {
    const [nonce, output] = report.token ?? ["", ""];
    return { ...report, marked: tokenOf(fromText(nonce), fromText(output), report.sealed) };
  }

  /** How long until something is due, in seconds. secret: the device's. */
  secondsToNext(secret: string): number {
    const now = this.state.now();
    const moments = this.#lengths.map((length) => {
      const next = epochAt(now, length) + 1;
      const isDone = this.#answered.has(keyOf([length, next]));
      return (isDone ? epochStart(next, length) : this.#moment(secret, [length, next])) - now;
    });
    if (this.#wanted().length) moments.push(0);
    return Math.max(SHORTEST_SECONDS, this.#notBefore - now, Math.min(...moments));
  }

  /**
   * Asks for what is due; whether anything came. What fails is tried again later. until: when the time
   * for it is over, as performance.now() has it.
   *
   * @throws StateUnusable what was asked for could not be kept.
   */
  fetch(secret: string, until: number): Promise<boolean> {
    return this.#fetches(() => this.#fetchDue(secret, until));
  }

  async #fetchDue(secret: string, until: number): Promise<boolean> {
    const now = this.state.now();
    this.reason = "";
    if (now < this.#notBefore || performance.now() >= until) return false;
    const due = this.#lengths
      .map((length): Due => [length, epochAt(now, length) + 1])
      .filter((due) => now >= this.#moment(secret, due));
    const requests = new Map([...due, ...this.#wanted()].map((stream) => [keyOf(stream), stream]));
    let hasNew = false;
    let hasFailed = false;
    // What is wrong with those of a day is nothing to those of an hour.
    for (const [key, request] of requests) {
      if (this.#answered.has(key) || now >= closingTime(request)) continue;
      if (await this.#isFetched(request, until)) hasNew = true;
      else hasFailed = true;
      if (this.reason === UNREACHABLE) break;
    }
    this.#failures = hasFailed ? this.#failures + 1 : 0;
    if (hasFailed) this.#notBefore = now + Math.min(soon(this.#failures), APART_SECONDS);
    return hasNew;
  }

  get #lengths(): string[] {
    return [...new Set([...this.bundle.metrics.values()].map((metric) => metric.epoch))].sort();
  }

  /** Every stream of a length of epoch, with as many as one device may send of it. */
  #streams(length: string): [stream: string, most: number][] {
    return [...this.bundle.metrics.values()]
      .filter((metric) => metric.epoch === length)
      .flatMap((metric) =>
        namesOf(metric).map((name): [string, number] => [name, metric.limits.reportsPerEpoch]),
      )
      .sort(([first], [second]) => (first < second ? -1 : 1));
  }

  /** The epochs of reports that wait for tokens of which the issuer was not asked. */
  #wanted(): Due[] {
    return [...this.#lacking.values()].filter((stream) => !this.#answered.has(keyOf(stream)));
  }

  /**
   * When the tokens of an epoch are asked for: somewhere in the one before.
   *
   * PRIVACY: of the secret alone; so it says nothing of when the device reports.
   */
  #moment(secret: string, [length, epoch]: Due): number {
    const step = pick(memoOf(secret, "tokens").coins(TEXT.encode(`${length}|${epoch}`)), STEPS);
    const [previousStart, start] = [epochStart(epoch - 1, length), epochStart(epoch, length)];
    return previousStart + ((start - previousStart) * step) / STEPS;
  }

  async #isFetched(due: Due, until: number): Promise<boolean> {
    try {
      await this.#fetch(due, until);
      return true;
    } catch (error) {
      if (error instanceof TryAgain) {
        this.reason = error.reason;
        const message = `reports wait for tokens: the issuer answers ${error.reason}`;
        this.diagnostics.warnOnce(error.reason, message);
      } else if (error instanceof BadParameter) {
        // PRIVACY: an issuer that answers one person by a key of its own gets no report to mark.
        this.diagnostics.warnOnce("tokens", `tokens are refused: ${error.message}`);
      } else throw error;
      return false;
    }
  }

  async #fetch(due: Due, until: number): Promise<void> {
    const { ristretto255_oprf: oprf } = await load("curve");
    const [length, epoch] = due;
    const { publicKey } = this.issuer;
    const stored = (await this.state.device()).wallet ?? EMPTY;
    const newPending: Record<string, Wallet["pending"][string]> = {};
    const streams = this.#streams(length);
    for (const [stream, tokenCount] of streams) {
      const period = periodOf(stream, epoch);
      if (stored.pending[period] || stored.free[this.#kindOf(period)]) continue;
      const blindedTokens: Blinded[] = [];
      for (let number = 0; number < tokenCount; number += 1) {
        await nextTask(); // some milliseconds each
        const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
        blindedTokens.push(blinded(oprf, nonce, publicKey, tokenInfo(stream, epoch)));
      }
      newPending[period] = blindedTokens.map((token) => [
        toText(token.input),
        toText(token.blind),
        toText(token.element),
      ]);
    }
    // Kept before it is asked: after a kill the same is asked again, and answered again.
    const { wallet, trust } = await this.state.change((device) => {
      if (this.#isFormer(device)) return device;
      const { pending, free } = this.#open(device.wallet ?? EMPTY);
      const fresh = Object.entries(newPending).filter(([period]) => !free[this.#kindOf(period)]);
      return { ...device, wallet: { pending: { ...Object.fromEntries(fresh), ...pending }, free } };
    });
    const isFormer = this.#isFormer({ trust });
    const requests = (isFormer ? [] : streams).flatMap(([stream]) => {
      const period = periodOf(stream, epoch);
      if (wallet?.free[this.#kindOf(period)]) return [];
      const inputs = wallet?.pending[period]?.map(([input, blind, element]): Blinded => {
        return { input: fromText(input), blind: fromText(blind), element: fromText(element) };
      });
      return inputs
        ? [{ stream, epoch, inputs, elements: inputs.map((input) => input.element) }]
        : [];
    });
    if (requests.length) {
      const seconds = Math.max(0, until - performance.now()) / 1000;
      const limit = after(Math.min(CALL_SECONDS, seconds));
      const answer = await within(limit, this.ask(tokenRequest(requests), limit), tooLate);
      const results = issuedIn(answer, requests.length);
      const minted: Record<string, Token[]> = {};
      let failure: BadParameter | null = null;
      for (const [index, { stream, inputs }] of requests.entries()) {
        const result = results[index];
        if (!result) {
          const none = "the issuer gives no tokens for";
          this.diagnostics.warnOnce("tokens_not_given", `${none} "${stream}": its reports wait`);
          continue; // and the same is asked by the next page: the issuer may learn of it
        }
        if (!result.evaluated.length) {
          const had = "this account has had its tokens of";
          this.diagnostics.warnOnce("tokens_had", `${had} "${stream}": its reports expire`);
        }
        await nextTask();
        // An issuer with another stream table gives fewer: the first of them.
        const evaluatedInputs = inputs.slice(0, result.evaluated.length);
        const evaluation = [
          result.evaluated,
          result.proof,
          publicKey,
          tokenInfo(stream, epoch),
        ] as const;
        try {
          const outputs = evaluatedInputs.length
            ? outputsOf(oprf, evaluatedInputs, ...evaluation)
            : [];
          minted[periodOf(stream, epoch)] = outputs.map((output, place) => {
            return [toText(evaluatedInputs[place]?.input ?? output), toText(output), this.#key];
          });
        } catch (error) {
          if (!(error instanceof BadParameter)) throw error;
          failure = error; // of this stream alone; the same is asked again
        }
      }
      // PRIVACY: nothing is left by which they were blinded.
      await this.state.change((device) => {
        const { pending, free } = device.wallet ?? EMPTY;
        const fresh = Object.entries(minted)
          .filter(([period]) => pending[period])
          .map(([period, tokens]) => [this.#kindOf(period), tokens] as const);
        const unminted = Object.entries(pending).filter(([period]) => !minted[period]);
        return {
          ...device,
          wallet: {
            pending: Object.fromEntries(unminted),
            free: { ...free, ...Object.fromEntries(fresh) },
          },
        };
      });
      for (const period of Object.keys(minted)) this.#lacking.delete(period);
      if (failure) throw failure;
    }
    this.#answered.add(keyOf(due));
    for (const [period, lacking] of this.#lacking) {
      if (keyOf(lacking) === keyOf(due)) this.#lacking.delete(period);
    }
  }

  /**
   * Whether a later bundle was taken on this device since: its pages alone ask, by a key of the
   * issuer that this one may not know, and send what waits here.
   */
  #isFormer({ trust }: Pick<Device, "trust">): boolean {
    return (trust?.serial ?? 0) > this.bundle.serial;
  }

  /** Whether it is a token by the issuer's key of the bundle: another is none any more. */
  #isOurs(token: Token | null | undefined): boolean {
    return token?.[2] === this.#key;
  }

  #kindOf(period: string): string {
    return `${period}|${this.#key}`;
  }

  /** The wallet without what nothing can be sent of any more. */
  #open({ pending, free }: Wallet): Wallet {
    const now = this.state.now();
    const isOpen = ([period]: [string, unknown]) => {
      const [stream = "", epoch] = period.split("|");
      const metric = this.bundle.metrics.get(metricNameOf(stream));
      return metric !== undefined && now < closingTime([metric.epoch, Number(epoch)]);
    };
    return {
      pending: Object.fromEntries(Object.entries(pending).filter(isOpen)),
      free: Object.fromEntries(Object.entries(free).filter(isOpen)),
    };
  }
}

/** One, of what a client warns by. */
export type PurseOf = (diagnostics: Diagnostics) => Purse;

/** As PurseOf says. */
export function purseOf(...own: readonly [Bundle, TokenIssuer, State, AskIssuer]): PurseOf {
  return (diagnostics) => new Purse(...own, diagnostics);
}

/** All its streams: of each tier, and of each cell, whichever is this device's. */
function namesOf({ name, streams, breakdown }: Metric): string[] {
  const cells = ["", ...(breakdown?.cells ?? [])];
  return streams.flatMap((stream) =>
    cells.map((cell) => name + cell + stream.name.slice(name.length)),
  );
}

function periodOf(stream: string, epoch: number): string {
  return `${stream}|${epoch}`;
}

function keyOf([length, epoch]: Due): string {
  return `${length}|${epoch}`;
}

/** When the shuffler takes no report of an epoch any more, in seconds since 1970. */
function closingTime([length, epoch]: Due): number {
  return epochStart(epoch + 1, length) + graceSeconds(length);
}
