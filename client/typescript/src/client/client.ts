/** Client: what an app embeds. */
import { signerOf, type Bundle } from "../catalog/bundle.js";
import type { Public } from "../catalog/metric.js";
import type { Features, Label, Value } from "../catalog/values.js";
import { StateUnusable, TryAgain, UNREACHABLE } from "../errors.js";
import { load, type Modules } from "../loading.js";
import { after, within } from "../time_limits.js";
import { SystemBits, type BitSource } from "../mechanisms/random_bits.js";
import { Background, readable } from "./background.js";
import { turned } from "./consent.js";
import { newDevice, type Device } from "./device.js";
import { Diagnostics, type OnDrop } from "./diagnostics.js";
import type { Outcome } from "./outcome.js";
import type { TokenStoreOf } from "./token_store.js";
import { Reporter } from "./reporter.js";
import { Sender } from "./sender.js";
import { DISABLED, isClaimed, State } from "./state.js";
import type { Storage } from "./storage.js";
import type { AskIssuer } from "../transport/issuer.js";
import type { Transport } from "./transport.js";
import { workQueue } from "./work_queue.js";
import type { LedgerView } from "./ledger_view.js";
import { soon, Waits } from "./waits.js";

/** The options of a client. */
export interface Options {
  /**
   * The maximum random delay in seconds before reports are sent; null: only flush() and close()
   * send.
   */
  readonly holdSeconds?: number | null;
  /**
   * Whether mistakes of the programmer throw; the default is true with a bundle of development.
   * Otherwise they are outcomes, counted, with a warning.
   */
  readonly strict?: boolean;
  /** Send nothing; count reported values on this device, for its person to see in ledger(). */
  readonly local?: boolean;
  /** The maximum epsilon of a report, in nats. */
  readonly maxEpsilon?: number;
  /**
   * Public values of this device, such as { os: "linux" }, by the fields of the bundle's
   * breakdowns.
   */
  readonly public?: Public;
  /** Called for every payload that is given up. */
  readonly onDrop?: OnDrop;
  /** The time, in seconds since 1970. */
  readonly now?: () => number;
  /** Coins, for tests. */
  readonly coins?: BitSource;
  /** Sends requests for tokens to the bundle's issuer, if there is one. */
  readonly ask?: AskIssuer;
  /** Whether the app itself named an operator of the bundle's line. */
  readonly operatorNamed?: boolean;
}

const LONGEST_TIMER = 2 ** 31 - 1; // in milliseconds: a longer one ends at once
const HOLD_SECONDS = 3600;
const LOOK_SECONDS = 0.2; // to wait for another page or process that is sending
const STOP_SECONDS = 2;

/**
 * Randomizes values on this device and sends them, in the background, to the shuffler.
 *
 * `report()` draws coins and returns at once. No method throws because of the network or the
 * server; `dropped` counts unsent reports by reason.
 */
export class Client {
  readonly #bundle: Bundle;
  readonly #state: State;
  readonly #diagnostics: Diagnostics;
  readonly #reporter: Reporter;
  readonly #sender: Sender;
  readonly #background: Background;
  readonly #strict: boolean;
  readonly #checks: Modules["checks"];
  readonly #consents = workQueue();
  #closing: Promise<boolean> | undefined;

  /** Use open() of hubbub-client or of hubbub-client/node, or Client.over(). */
  private constructor(
    bundle: Bundle,
    state: State,
    device: Device,
    transport: Transport,
    options: Options,
    checks: Modules["checks"],
    tokenStore?: TokenStoreOf,
  ) {
    this.#checks = checks;
    const {
      holdSeconds = HOLD_SECONDS,
      maxEpsilon = Infinity,
      public: publicValues = {},
    } = options;
    this.#bundle = bundle;
    this.#state = state;
    this.#strict = options.strict ?? bundle.development;
    this.#diagnostics = state.diagnostics;
    const coins = options.coins ?? new SystemBits();
    const allowed = [maxEpsilon, publicValues, this.#diagnostics] as const;
    this.#reporter = new Reporter(bundle, device, coins, state.now, ...allowed);
    const parts = [this.#reporter, state, bundle, transport, this.#diagnostics] as const;
    this.#sender = new Sender(...parts, tokenStore?.(this.#diagnostics) ?? null);
    const waits = holdSeconds === null ? null : new Waits(bundle, holdSeconds);
    this.#background = new Background(this.#sender, waits, this.#diagnostics, () => {
      this.#reporter.cannotKeep();
    });
    this.#background.start();
  }

  /**
   * A client for a bundle, over a storage and a transport.
   *
   * If nothing can be stored, the client reports nothing and warns once: every outcome is
   * "no_state".
   *
   * @throws BundleRefused the bundle is another operator's, older than an accepted one, or allows
   * more than was promised.
   * @throws BadParameter an option is out of range.
   */
  static async over(
    bundle: Bundle,
    storage: Storage,
    transport: Transport,
    options: Options = {},
  ): Promise<Client> {
    const { now = () => Date.now() / 1000 } = options;
    const checks = await load("checks");
    const diagnostics = new Diagnostics(options.onDrop);
    checks.refuseUnfit(options, bundle, diagnostics);
    const admit = (device: Device) => {
      const { trust, another } = checks.admitted(
        device.trust,
        bundle,
        options.operatorNamed ?? false,
      );
      // A page whose bundle brings no news does not write the state.
      if (!another && JSON.stringify(trust) === JSON.stringify(device.trust)) return device;
      const { consent } = device;
      // The waiting reports belong to another operator.
      const generation = consent.generation + (another ? 2 : 0);
      return { ...device, trust, consent: { ...consent, generation } };
    };
    const state = new State(storage, bundle.caps, now, diagnostics, admit, signerOf(bundle));
    try {
      const device = await state.device();
      const { tokens } = bundle;
      const { ask } = options;
      const isLocal = options.local ?? false;
      const moreParts = isLocal || (tokens && ask) ? await load("more") : null;
      const tokenStore = isLocal
        ? null
        : tokens && ask && moreParts?.tokenStoreOf(bundle, tokens, state, ask);
      const client = new Client(
        bundle,
        state,
        device,
        transport,
        options,
        checks,
        tokenStore ?? undefined,
      );
      if (isLocal && moreParts) client.#reporter.local = new moreParts.Local(client.#reporter);
      await client.#reporter.ready(device);
      await client.#sender.ready();
      if (Math.min(client.#reporter.secondsToCover(), client.#sender.secondsToTokens()) < Infinity)
        client.#background.wake();
      return client;
    } catch (error) {
      if (!(error instanceof StateUnusable)) throw error;
      // Without storage nothing is drawn, and there may be no source of coins.
      const device = newDevice(bundle.line.length ? undefined : () => "");
      const client = new Client(bundle, state, device, transport, options, checks);
      client.#diagnostics.warnOnce("state", `nothing is reported: ${error.message}`);
      client.#reporter.cannotKeep();
      // Another tab may have held the lock for too long, so the next call tries again.
      if (!client.#isStorageless) client.#background.wake();
      return client;
    }
  }

  /**
   * Randomizes one value and queues it. It waits for nothing. For activity and retention metrics,
   * and only for them, leave out the value.
   *
   * @throws UnknownMetric strict, and the bundle has no such metric.
   * @throws ValueOutOfDomain strict, and the metric has no such value; the message hides it.
   */
  report(metric: string, value?: Value): Outcome {
    return this.#outcomeOf("report()", metric, () => this.#reporter.report(metric, value), value);
  }

  /**
   * The arm of an experiment that the app shows on this device.
   *
   * The arm follows from the device's secret and stays until the secret is forgotten. If the person
   * has opted out, it is the first arm; if the operator has ended the device's arm, it is one that
   * continues.
   *
   * @throws UnknownMetric strict, and the bundle has no such experiment; otherwise it is "".
   */
  arm(experiment: string): string {
    try {
      return this.#reporter.arm(experiment);
    } catch (error) {
      if (this.#strict) throw error;
      this.#diagnostics.warnOnce("arm", `arm() is used wrongly: ${readable(error)}`);
      return "";
    }
  }

  /**
   * Reports a gradient of a model for one person, in the round or rounds of this device.
   *
   * Features and label wait in memory until the state of the round has been fetched.
   *
   * features: the values of the model's features, by name or as a list in their order; numbers
   * outside their range are clipped and counted in `clipped`. label: the value to predict.
   *
   * @throws UnknownMetric strict, and the bundle has no such model.
   * @throws ValueOutOfDomain strict, and these are not its features or label; the message hides them.
   */
  learn(model: string, features: Features, label: Label): Outcome {
    return this.#outcomeOf("learn()", model, () => this.#reporter.learn(model, features, label));
  }

  /** Resolves after all reports so far are stored on this device. */
  settled(): Promise<void> {
    return this.#background.settled();
  }

  /**
   * Sends the waiting reports, for at most `timeoutSeconds`. Resolves to true if no report that may
   * be sent is left, here or with another page or process that is sending it, and no example awaits
   * the state of its model.
   *
   * @throws BadParameter strict, and the timeout is no number; otherwise it is 10.
   */
  async flush(timeoutSeconds = 10): Promise<boolean> {
    return this.#flush(this.#seconds("flush()", timeoutSeconds), true);
  }

  /**
   * Flushes, then stops permanently. Resolves to true if nothing is left for the next start and no
   * example was given up. In Node it ends when the network cannot be reached; waiting reports are
   * stored.
   *
   * @throws BadParameter as flush().
   */
  async close(timeoutSeconds = 10): Promise<boolean> {
    const seconds = this.#seconds("close()", timeoutSeconds);
    this.#closing ??= this.#close(seconds);
    return this.#closing;
  }

  #seconds(call: string, timeoutSeconds: number): number {
    return this.#checks.secondsOf(call, timeoutSeconds, this.#strict, this.#diagnostics);
  }

  async #close(timeoutSeconds: number): Promise<boolean> {
    const isEmpty = await this.#flush(timeoutSeconds, false);
    this.#background.end();
    await within(after(STOP_SECONDS), this.#sender.stop()).catch(() => undefined);
    this.#drop("awaits_state", this.#reporter.learner?.forget());
    this.#reporter.switch(false); // what is being stored is stored no more, and counted here
    this.#drop("unstored", this.#reporter.forget());
    this.#state.storage.close();
    return isEmpty;
  }

  /** patient: whether to try again after a server could not be reached. */
  async #flush(timeoutSeconds: number, patient: boolean): Promise<boolean> {
    if (this.#isStorageless) return true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const milliseconds = Math.min(1000 * timeoutSeconds, LONGEST_TIMER);
      // Only this timer keeps a Node program alive, because the caller waits.
      const timeUp = new Promise<false>(
        (resolve) => (timer = setTimeout(resolve, milliseconds, false)),
      );
      return await Promise.race([
        this.#sendUntil(performance.now() + milliseconds, patient),
        timeUp,
      ]);
    } catch (error) {
      this.#diagnostics.warnOnce("flush", `sending failed: ${readable(error)}`);
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends what it can while the page goes away, without waiting for an answer. */
  leave(): void {
    this.#sender.last();
  }

  /**
   * Stops reporting at once in all tabs, until enable(). Waiting reports are deleted.
   *
   * forget: also delete this device's secret and all records of answers. The sums of the spent
   * budget stay, so that limits hold, and current epochs stay reported.
   *
   * @throws StateUnusable this page has stopped, but the choice could not be stored.
   * @throws BadParameter the same, because `forget` is no boolean.
   */
  async disable(options?: { readonly forget?: boolean }): Promise<void> {
    void this.#halt();
    this.#checks.refuseOptions("disable()", "forget", options);
    await this.#consents(async () => {
      await this.#halt(); // an enable() may have finished meanwhile
      this.#drop(DISABLED, this.#reporter.learner?.forget());
      this.#drop(DISABLED, await this.#sender.discard());
      // The opt-out is stored first: forgetting needs a part of the SDK that a page may fail to
      // load.
      const device = await this.#state.change(
        (previous) => {
          const generation = turned(previous.consent.generation, false);
          return { ...previous, consent: { ...previous.consent, generation }, events: null };
        },
        { insists: true },
      );
      const forget = options?.forget ? (await load("more")).forget : () => device;
      await this.#reporter.stand(await forget(this.#state));
    });
  }

  /**
   * Switches reporting on. Values from while it was off are not sent. @throws StateUnusable it
   * stays off.
   */
  enable(): Promise<void> {
    return this.#consents(async () => {
      const device = await this.#state.change((previous) => {
        const generation = turned(previous.consent.generation, true);
        return { ...previous, consent: { ...previous.consent, generation } };
      });
      await this.#reporter.stand(device);
      this.#reporter.switch(true);
      this.#sender.goOn();
    });
  }

  /**
   * Stores the maximum epsilon that this person allows a report; null for the metric's own.
   *
   * Metrics with tiers report at the largest allowed epsilon; other metrics above the limit do not
   * report.
   *
   * maxLocal: the maximum local epsilon of a report; maxEpsilon if left out. If given, maxEpsilon
   * limits the central epsilon of metrics with a crowd.
   *
   * @throws BadParameter neither null nor a number from 0 on.
   */
  async prefer(
    maxEpsilon: number | null,
    options?: { readonly maxLocal?: number | null },
  ): Promise<void> {
    const { withLimits } = await load("more");
    const device = await this.#state.change(withLimits(maxEpsilon, options), {
      insists: true,
    });
    await this.#reporter.stand(device);
  }

  /** What left this device and the remaining budgets, for this person to see. */
  async ledger(): Promise<LedgerView> {
    await this.#sender.enter();
    const { device, ...reports } = await this.#state.all();
    const { view } = await load("more");
    return view(this.#bundle, device, reports, this.#state.now(), !!this.#reporter.local);
  }

  /**
   * Calls back whenever this page or process changes what `ledger()` returns: a payload was stored,
   * sent or given up. Returns a function that ends the calls.
   */
  watch(changed: () => void): () => void {
    const { watching } = this.#sender;
    watching.add(changed);
    return () => {
      watching.delete(changed);
    };
  }

  /** The number of payloads that wait to be sent. */
  async waiting(): Promise<number> {
    const { waiting } = await this.#state.all();
    return waiting.length + this.#reporter.drawn.length;
  }

  /** The number of payloads that this page or process gave up, by reason. */
  get dropped(): Readonly<Record<string, number>> {
    return { ...this.#diagnostics.dropped };
  }

  /** The number of calls of report() by outcome, in this page or process. */
  get outcomes(): Readonly<Partial<Record<Outcome, number>>> {
    return { ...this.#diagnostics.outcomes };
  }

  /** The number of values that learn() clipped to their range in this page or process, by model. */
  get clipped(): Readonly<Record<string, number>> {
    return { ...this.#reporter.learner?.clipped };
  }

  /** Whether the client has no bundle because nothing can be stored here. */
  get #isStorageless(): boolean {
    return !this.#bundle.line.length;
  }

  #halt(): Promise<void> {
    this.#reporter.switch(false);
    return this.#sender.stop();
  }

  #drop(reason: string, streams: readonly string[] = []): void {
    this.#diagnostics.drop(streams.map((stream) => ({ stream, reason })));
  }

  async #sendUntil(deadline: number, patient: boolean): Promise<boolean> {
    const sender = this.#sender;
    sender.reason = "";
    await sender.enter(); // before any request that a server may delay
    await sender.fetchModels(deadline);
    await sender.enter();
    let hasFetched = false;
    for (;;) {
      if (!patient && sender.reason === UNREACHABLE) return false;
      const outcome = await sender.attempt(deadline);
      let retrySeconds: number | null = null;
      if (outcome === "empty" && !(performance.now() >= deadline)) {
        // Complete reports are sent first, so that an unreachable issuer delays only reports that
        // need tokens.
        if (sender.tokenStore && !hasFetched) {
          hasFetched = true;
          await sender.fetchTokens(deadline);
          continue;
        }
        const { waiting } = await this.#state.all();
        const remaining = waiting.filter((report) => !this.#reporter.isHeld(report));
        // Another page's reports may arrive in a moment.
        const others = remaining.some((report) => isClaimed(report, this.#state.now()));
        retrySeconds = sender.tokenStore?.secondsToRetry() ?? null;
        if (!others && (!remaining.length || retrySeconds === null))
          return !remaining.length && !this.#reporter.learner?.awaits;
      }
      const seconds =
        outcome instanceof TryAgain
          ? soon(sender.failures, outcome.afterSeconds)
          : (retrySeconds ?? LOOK_SECONDS);
      const wait = outcome === "sent" ? 0 : 1000 * seconds;
      if (!(performance.now() + wait < deadline)) return false;
      await new Promise((resolve) => setTimeout(resolve, wait));
      hasFetched = false;
    }
  }

  #outcomeOf(call: string, metric: string, attempt: () => Outcome, value?: Value): Outcome {
    if (this.#closing) return "closed";
    if (this.#isStorageless) return this.#diagnostics.count("no_state");
    const outcome = this.#diagnostics.count(this.#checked(call, metric, attempt, value));
    if (["queued", "awaits_state", "counted", "noted"].includes(outcome)) this.#background.wake();
    return outcome;
  }

  #checked(call: string, metric: string, attempt: () => Outcome, value?: Value): Outcome {
    try {
      return attempt();
    } catch (error) {
      const { metrics } = this.#bundle;
      const input = { call, metric, value };
      return this.#checks.mistakeOf(error, input, metrics, this.#strict, this.#diagnostics);
    }
  }
}
