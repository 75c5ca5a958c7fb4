/**
 * The token store: fetches tokens, and gives each report its token before it leaves.
 *
 * The device requests the tokens of an epoch at a moment of the previous epoch that follows from
 * its secret, or, if it has none yet, when it has something to send. It always requests tokens for
 * all streams of an epoch length, as many as one device may ever send, so a request reveals nothing
 * about reports. As client/hubbub/client/delivery/token_store.py.
 */
import type { Bundle } from "../catalog/bundle.js";
import { fromText, toText } from "../catalog/encoding.js";
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import type { Metric } from "../catalog/metric.js";
import { metricNameOf } from "../catalog/tiers.js";
import { BadParameter, tooLate, TryAgain, UNREACHABLE } from "../errors.js";
import { load } from "../loading.js";
import { after, within } from "../time_limits.js";
import { pick } from "../mechanisms/random_bits.js";
import { issuedIn, tokenInfo, tokenOf, tokenRequest } from "../transport/issuer.js";
import type { AskIssuer, TokenIssuer } from "../transport/issuer.js";
import { blinded, outputsOf, type Blinded } from "../transport/poprf.js";
import type { TokenedReport } from "../transport/submission.js";
import type { Device } from "./device.js";
import type { Diagnostics } from "./diagnostics.js";
import { memoOf } from "./memo.js";
import { nextTask } from "./sender.js";
import type { State } from "./state.js";
import type { StoredReport } from "./storage.js";
import { workQueue } from "./work_queue.js";
import { soon } from "./waits.js";
import { EMPTY_WALLET, type Token, type Wallet } from "./token_wallet.js";

const NONCE_BYTES = 16;
const KEY_LETTERS = 16; // of the issuer's public key, in base64: enough to identify it
const STEPS = 1 << 16; // an epoch has this many parts, and the secret selects one of them
const SHORTEST_SECONDS = 0.5;
const APART_SECONDS = 600; // the maximum pause between tries
const CALL_SECONDS = 10;
const ENCODER = new TextEncoder();

/** The length of an epoch and its number. */
type Due = readonly [length: string, epoch: number];

/** The tokens of one page or process. */
export class TokenStore {
  /** Why the last request to the issuer failed; "" if it succeeded. */
  reason = "";
  readonly #answered = new Set<string>();
  readonly #lacking = new Map<string, Due>();
  // A concurrent caller may need tokens that were not due before.
  readonly #fetches = workQueue();
  readonly #key: string;
  #failures = 0;
  #notBefore = 0;

  /** ask: sends a request to the issuer. */
  constructor(
    readonly bundle: Bundle,
    readonly issuer: TokenIssuer,
    readonly state: State,
    readonly ask: AskIssuer,
    readonly diagnostics: Diagnostics,
  ) {
    this.#key = toText(issuer.publicKey).slice(0, KEY_LETTERS);
  }

  /** Records that this report needs a token before it may leave. */
  needs({ stream, epoch, token }: Pick<StoredReport, "stream" | "epoch" | "token">): void {
    const metric = this.bundle.metrics.get(metricNameOf(stream));
    if (metric && !this.#isOurs(token))
      this.#lacking.set(periodOf(stream, epoch), [metric.epoch, epoch]);
  }

  /**
   * Assigns a token to each report, permanently, for at most `maxReports`; reports without a token
   * are left out.
   *
   * Called within a step of the state, so nothing may be awaited.
   */
  give(
    device: Device,
    reports: readonly StoredReport[],
    maxReports: number,
  ): [Device, StoredReport[]] {
    const wallet = this.#open(device.wallet ?? EMPTY_WALLET);
    const freeTokens: Record<string, readonly Token[]> = { ...wallet.free };
    const ready: StoredReport[] = [];
    for (const report of reports) {
      if (ready.length === maxReports) break;
      const kind = this.#kindOf(periodOf(report.stream, report.epoch));
      const boundToken = this.#isOurs(report.token) ? report.token : null;
      const [token, ...remaining] = boundToken ? [boundToken] : (freeTokens[kind] ?? []);
      if (!token) {
        this.needs(report);
        continue;
      }
      if (!boundToken) freeTokens[kind] = remaining;
      ready.push({ ...report, token });
    }
    return [{ ...device, wallet: { ...wallet, free: freeTokens } }, ready];
  }

  /** A report with its token, ready to be sent. */
  marked(report: StoredReport): TokenedReport {
    const [nonce, output] = report.token ?? ["", ""];
    return { ...report, marked: tokenOf(fromText(nonce), fromText(output), report.sealed) };
  }

  /** The seconds until the next tokens are due. secret: the device's. */
  secondsToNext(secret: string): number {
    const now = this.state.now();
    const moments = this.#lengths.map((length) => {
      const nextEpoch = epochAt(now, length) + 1;
      const isDone = this.#answered.has(keyOf([length, nextEpoch]));
      return (
        (isDone ? epochStart(nextEpoch, length) : this.#moment(secret, [length, nextEpoch])) - now
      );
    });
    if (this.#wanted().length) moments.push(0);
    return Math.max(SHORTEST_SECONDS, this.#notBefore - now, Math.min(...moments));
  }

  /** The seconds until reports may have tokens; null if no failed request is the cause. */
  secondsToRetry(): number | null {
    if (!this.#failures || !this.#lacking.size) return null;
    return Math.max(0, this.#notBefore - this.state.now());
  }

  /**
   * Requests due tokens; resolves to true if there are new ones. Failures are retried later.
   * deadline: the end of the available time, as of performance.now().
   *
   * @throws StateUnusable the tokens could not be stored.
   */
  fetch(secret: string, deadline: number): Promise<boolean> {
    return this.#fetches(() => this.#fetchDue(secret, deadline));
  }

  async #fetchDue(secret: string, deadline: number): Promise<boolean> {
    const now = this.state.now();
    this.reason = "";
    if (now < this.#notBefore || performance.now() >= deadline) return false;
    const due = this.#lengths
      .map((length): Due => [length, epochAt(now, length) + 1])
      .filter((due) => now >= this.#moment(secret, due));
    const requests = new Map([...due, ...this.#wanted()].map((stream) => [keyOf(stream), stream]));
    let hasNew = false;
    let hasFailed = false;
    // A failure with daily tokens does not affect hourly ones.
    for (const [key, request] of requests) {
      if (this.#answered.has(key) || now >= closingTime(request)) continue;
      if (await this.#isFetched(request, deadline)) hasNew = true;
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

  /** Every stream of an epoch length, with the maximum number of its reports from one device. */
  #streams(length: string): [stream: string, most: number][] {
    return [...this.bundle.metrics.values()]
      .filter((metric) => metric.epoch === length)
      .flatMap((metric) =>
        namesOf(metric).map((name): [string, number] => [name, metric.limits.reportsPerEpoch]),
      )
      .sort(([first], [second]) => (first < second ? -1 : 1));
  }

  /** The epochs of waiting reports whose tokens were not requested yet. */
  #wanted(): Due[] {
    return [...this.#lacking.values()].filter((stream) => !this.#answered.has(keyOf(stream)));
  }

  /**
   * The moment in the previous epoch when the tokens of an epoch are requested.
   *
   * PRIVACY: it depends only on the secret, so it does not reveal when the device reports.
   */
  #moment(secret: string, [length, epoch]: Due): number {
    const step = pick(memoOf(secret, "tokens").coins(ENCODER.encode(`${length}|${epoch}`)), STEPS);
    const [previousStart, start] = [epochStart(epoch - 1, length), epochStart(epoch, length)];
    return previousStart + ((start - previousStart) * step) / STEPS;
  }

  async #isFetched(due: Due, deadline: number): Promise<boolean> {
    try {
      await this.#fetch(due, deadline);
      return true;
    } catch (error) {
      if (error instanceof TryAgain) {
        this.reason = error.reason;
        const message = `reports wait for tokens: the issuer answers ${error.reason}`;
        this.diagnostics.warnOnce(error.reason, message);
      } else if (error instanceof BadParameter) {
        // PRIVACY: an issuer that uses a special key for one person gets no report that it could
        // recognize.
        this.diagnostics.warnOnce("tokens", `tokens are refused: ${error.message}`);
      } else throw error;
      return false;
    }
  }

  async #fetch(due: Due, deadline: number): Promise<void> {
    const { ristretto255_oprf: oprf } = await load("curve");
    const [length, epoch] = due;
    const { publicKey } = this.issuer;
    const storedWallet = (await this.state.device()).wallet ?? EMPTY_WALLET;
    const newPending: Record<string, Wallet["pending"][string]> = {};
    const streams = this.#streams(length);
    for (const [stream, tokenCount] of streams) {
      const period = periodOf(stream, epoch);
      if (storedWallet.pending[period] || storedWallet.free[this.#kindOf(period)]) continue;
      const blindedTokens: Blinded[] = [];
      for (let number = 0; number < tokenCount; number += 1) {
        await nextTask(); // lets other work run, because each blinding takes some milliseconds
        const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
        blindedTokens.push(blinded(oprf, nonce, publicKey, tokenInfo(stream, epoch)));
      }
      newPending[period] = blindedTokens.map((token) => [
        toText(token.input),
        toText(token.blind),
        toText(token.element),
      ]);
    }
    // Stored before the request: after a kill the same request is repeated and gets the same
    // answer.
    const { wallet, trust } = await this.state.change((device) => {
      if (this.#isFormer(device)) return device;
      const { pending, free } = this.#open(device.wallet ?? EMPTY_WALLET);
      const newRequests = Object.entries(newPending).filter(
        ([period]) => !free[this.#kindOf(period)],
      );
      return {
        ...device,
        wallet: { pending: { ...Object.fromEntries(newRequests), ...pending }, free },
      };
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
      const seconds = Math.max(0, deadline - performance.now()) / 1000;
      const limit = after(Math.min(CALL_SECONDS, seconds));
      const answer = await within(limit, this.ask(tokenRequest(requests), limit), tooLate);
      const results = issuedIn(answer, requests.length);
      const minted: Record<string, Token[]> = {};
      let failure: BadParameter | null = null;
      for (const [index, { stream, inputs }] of requests.entries()) {
        const result = results[index];
        if (!result) {
          const noTokens = "the issuer gives no tokens for";
          this.diagnostics.warnOnce(
            "tokens_not_given",
            `${noTokens} "${stream}": its reports wait`,
          );
          continue; // the next page repeats the request, since the issuer may get to know the stream
        }
        if (!result.evaluated.length) {
          const had = "this account has had its tokens of";
          this.diagnostics.warnOnce("tokens_had", `${had} "${stream}": its reports expire`);
        }
        await nextTask();
        // An issuer with another stream table answers only the first inputs.
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
          failure = error; // only for this stream; the request is repeated
        }
      }
      // PRIVACY: the blinding factors are deleted.
      await this.state.change((device) => {
        const { pending, free } = device.wallet ?? EMPTY_WALLET;
        const newTokens = Object.entries(minted)
          .filter(([period]) => pending[period])
          .map(([period, tokens]) => [this.#kindOf(period), tokens] as const);
        const unminted = Object.entries(pending).filter(([period]) => !minted[period]);
        return {
          ...device,
          wallet: {
            pending: Object.fromEntries(unminted),
            free: { ...free, ...Object.fromEntries(newTokens) },
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
   * Whether this device has accepted a later bundle. Then only pages with that bundle request
   * tokens and send waiting reports, because this page may not have the issuer's key.
   */
  #isFormer({ trust }: Pick<Device, "trust">): boolean {
    return (trust?.serial ?? 0) > this.bundle.serial;
  }

  /**
   * Whether the token was made with the bundle's issuer key; tokens of other keys are worthless.
   */
  #isOurs(token: Token | null | undefined): boolean {
    return token?.[2] === this.#key;
  }

  #kindOf(period: string): string {
    return `${period}|${this.#key}`;
  }

  /** The wallet without tokens of epochs for which nothing can be sent any more. */
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

/** A token store with the client's diagnostics. */
export type TokenStoreOf = (diagnostics: Diagnostics) => TokenStore;

/** See TokenStoreOf. */
export function tokenStoreOf(
  ...parts: readonly [Bundle, TokenIssuer, State, AskIssuer]
): TokenStoreOf {
  return (diagnostics) => new TokenStore(...parts, diagnostics);
}

/** All streams of a metric: every tier and every cell, whichever this device uses. */
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

/** When the shuffler stops accepting reports of an epoch, in seconds since 1970. */
function closingTime([length, epoch]: Due): number {
  return epochStart(epoch + 1, length) + graceSeconds(length);
}
