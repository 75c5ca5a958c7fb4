/** Client: what an app embeds. */
import { signerOf, type Bundle } from "../catalog/bundle.js";
import type { Public } from "../catalog/metric.js";
import type { Features, Label, Value } from "../catalog/values.js";
import {
  BadParameter,
  StateUnusable,
  TryAgain,
  UnknownMetric,
  UNREACHABLE,
  ValueOutOfDomain,
} from "../errors.js";
import { load } from "../loading.js";
import { after, within } from "../within.js";
import { SystemBits, type BitSource } from "../mechanisms/bits.js";
import { Background, readable } from "./background.js";
import { turned, type Consent } from "./consent.js";
import { newDevice, type Device } from "./device.js";
import { Diagnostics, type OnDrop } from "./diagnostics.js";
import type { Hinted } from "./hints.js";
import type { Outcome } from "./outcome.js";
import type { PurseOf } from "./purse.js";
import { Reporter } from "./reporter.js";
import { Sender } from "./sender.js";
import { DISABLED, isClaimed, State } from "./state.js";
import type { Storage } from "./storage.js";
import type { AskIssuer } from "../transport/issuing.js";
import type { Transport } from "./transport.js";
import { turns } from "./turns.js";
import type { LedgerView } from "./view.js";
import { soon, Waits } from "./waits.js";

/** What an app may say about how its client is to be. */
export interface Options {
  /** Reports wait a random time up to this before they go; null: only flush() and close() send. */
  readonly holdSeconds?: number | null;
  /**
   * Throw for the programmer's mistakes, as with a bundle of development unless it is said; otherwise
   * they are outcomes, counted and warned of.
   */
  readonly strict?: boolean;
  /** Send nothing, and count on this device what is reported, for its person to see in ledger(). */
  readonly local?: boolean;
  /** The most epsilon that a report may have, in nats. */
  readonly maxEpsilon?: number;
  /** What is public of this device, as { os: "linux" }, by the fields of the bundle's breakdowns. */
  readonly public?: Public;
  /** Told of every payload that is given up. */
  readonly onDrop?: OnDrop;
  /** The time, in seconds since 1970. */
  readonly now?: () => number;
  /** Coins, for tests. */
  readonly coins?: BitSource;
  /** Takes requests for tokens to the bundle's issuer, where it names one. */
  readonly ask?: AskIssuer;
  /** Whether the app itself named an operator of the bundle's line. */
  readonly operatorNamed?: boolean;
}

const LONGEST_TIMER = 2 ** 31 - 1; // in milliseconds: a longer one ends at once
const HOLD_SECONDS = 3600;
const LOOK_SECONDS = 0.2; // for what another page or process is sending
const STOP_SECONDS = 2;
const LONGEST_HOLD_SECONDS = 86_400;

/**
 * Randomizes values on this device and sends them, in the background, to the shuffler.
 *
 * `report()` waits for nothing: it draws coins and returns. Nothing here throws for the network's or
 * the server's faults; what could not be sent is in `dropped`, by reason.
 */
export class Client {
  readonly #bundle: Bundle;
  readonly #state: State;
  readonly #diagnostics: Diagnostics;
  readonly #reporter: Reporter;
  readonly #sender: Sender;
  readonly #background: Background;
  readonly #strict: boolean;
  readonly #hinted: Hinted;
  readonly #consents = turns();
  #closing: Promise<boolean> | undefined;

  /** Use Client.over(), or what opens one for a browser or for Node. */
  private constructor(
    bundle: Bundle,
    state: State,
    device: Device,
    transport: Transport,
    options: Options,
    hinted: Hinted,
    purse?: PurseOf,
  ) {
    this.#hinted = hinted;
    const {
      holdSeconds = HOLD_SECONDS,
      maxEpsilon = Infinity,
      public: publicValues = {},
    } = options;
    refuseOutside("maxEpsilon", maxEpsilon, Infinity);
    refuseOutside("holdSeconds", holdSeconds ?? 0, LONGEST_HOLD_SECONDS);
    this.#bundle = bundle;
    this.#state = state;
    this.#strict = options.strict ?? bundle.development;
    this.#diagnostics = state.diagnostics;
    const coins = options.coins ?? new SystemBits();
    const fields = [...bundle.metrics.values()].flatMap(({ breakdown, experiment }) =>
      (breakdown?.fields ?? []).filter((field) => field !== experiment?.name),
    );
    const missingField = fields.find((field) => !Object.hasOwn(publicValues, field));
    if (missingField) {
      const remedy = `metrics need it: pass public: { ${missingField}: ... }`;
      if (this.#strict) throw new BadParameter(remedy);
      this.#diagnostics.warnOnce("public", remedy);
    }
    const allowed = [maxEpsilon, publicValues, this.#diagnostics] as const;
    this.#reporter = new Reporter(bundle, device, coins, state.now, ...allowed);
    const parts = [this.#reporter, state, bundle, transport, this.#diagnostics] as const;
    this.#sender = new Sender(...parts, purse?.(this.#diagnostics) ?? null);
    const waits = holdSeconds === null ? null : new Waits(bundle, holdSeconds);
    this.#background = new Background(this.#sender, waits, this.#diagnostics, () => {
      this.#reporter.cannotKeep();
    });
    this.#background.start();
  }

  /**
   * A client for a bundle, over a storage and a transport.
   *
   * Where nothing can be kept it reports nothing, and says so once: every outcome is "no_state".
   *
   * @throws BundleRefused another operator's, older than one before, or more than was promised.
   * @throws BadParameter an option is out of range.
   */
  static async over(
    bundle: Bundle,
    storage: Storage,
    transport: Transport,
    options: Options = {},
  ): Promise<Client> {
    const { now = () => Date.now() / 1000 } = options;
    const { admitted, hinted } = await load("checks");
    const admit = (own: Device) => {
      const { trust, another } = admitted(own.trust, bundle, options.operatorNamed ?? false);
      // A page that learns nothing writes nothing.
      if (!another && JSON.stringify(trust) === JSON.stringify(own.trust)) return own;
      const { consent } = own;
      // What waits is another operator's.
      const generation = consent.generation + (another ? 2 : 0);
      return { ...own, trust, consent: { ...consent, generation } };
    };
    const state = new State(
      storage,
      bundle.caps,
      now,
      new Diagnostics(options.onDrop),
      admit,
      signerOf(bundle),
    );
    try {
      const device = await state.device();
      const { tokens } = bundle;
      const { ask } = options;
      const isLocal = options.local ?? false;
      const moreParts = isLocal || (tokens && ask) ? await load("more") : null;
      const purse = isLocal
        ? null
        : tokens && ask && moreParts?.purseOf(bundle, tokens, state, ask);
      const client = new Client(
        bundle,
        state,
        device,
        transport,
        options,
        hinted,
        purse ?? undefined,
      );
      if (isLocal && moreParts) client.#reporter.local = new moreParts.Local(client.#reporter);
      await client.#reporter.ready(device);
      await client.#sender.ready();
      if (Math.min(client.#reporter.secondsToCover(), client.#sender.secondsToTokens()) < Infinity)
        client.#background.wake();
      return client;
    } catch (error) {
      if (!(error instanceof StateUnusable)) throw error;
      const client = new Client(bundle, state, newDevice(), transport, options, hinted);
      client.#diagnostics.warnOnce("state", `nothing is reported: ${error.message}`);
      client.#reporter.cannotKeep();
      // Another tab may have had the lock for too long: it is tried again.
      if (!client.#isNobodys) client.#background.wake();
      return client;
    }
  }

  /**
   * Randomizes one value and queues it. It waits for nothing. Of activity and retention, and of them
   * alone, the value is left out.
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
   * It is drawn from the device's secret, and stays until that is forgotten. Where the person lets
   * nothing report, it is the first arm; where the operator has ended the experiment, one that goes on.
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
   * Tells a model which way it is wrong about one person, in this device's round of it, or its rounds.
   *
   * Until the state that the round learns by was fetched, features and label wait in memory.
   *
   * features: what the model knows people by, by name, or one for each in their order; numbers outside
   * their range are clipped, and counted in `clipped`. label: what it is to foretell.
   *
   * @throws UnknownMetric strict, and the bundle has no such model.
   * @throws ValueOutOfDomain strict, and these are not its features or label; the message hides them.
   */
  learn(model: string, features: Features, label: Label): Outcome {
    return this.#outcomeOf("learn()", model, () => this.#reporter.learn(model, features, label));
  }

  /** Resolves once all that was reported so far is kept on this device. */
  settled(): Promise<void> {
    return this.#background.settled();
  }

  /**
   * Sends what waits now, for at most so long; whether nothing is left waiting that may be sent, here or
   * by another page or process that has it in its hands, and no example awaits the state of its model.
   * Rejects never.
   */
  flush(timeoutSeconds = 10): Promise<boolean> {
    return this.#flush(timeoutSeconds, true);
  }

  /**
   * Flushes, then stops for good; whether nothing was left for the next start, and no example given up.
   * In Node it ends once the network cannot be reached: what waits is kept.
   */
  close(timeoutSeconds = 10): Promise<boolean> {
    this.#closing ??= this.#close(timeoutSeconds);
    return this.#closing;
  }

  async #close(timeoutSeconds: number): Promise<boolean> {
    const isEmpty = await this.#flush(timeoutSeconds, false);
    this.#background.end();
    await within(after(STOP_SECONDS), this.#sender.stop()).catch(() => undefined);
    this.#drop("awaits_state", this.#reporter.learner?.forget());
    this.#state.storage.close();
    return isEmpty;
  }

  /** patient: try again after a server could not be reached. */
  async #flush(timeoutSeconds: number, patient: boolean): Promise<boolean> {
    if (this.#isNobodys) return true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const milliseconds = Math.min(1000 * timeoutSeconds, LONGEST_TIMER);
      // The one timer that keeps a program of Node's alive: its caller waits.
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

  /** Sends what it can as the page goes away, without waiting for an answer. */
  leave(): void {
    this.#sender.last();
  }

  /**
   * Stops at once, and for good until enable(), in all tabs: what waits is deleted.
   *
   * forget: delete this device's secret and all that it has of answers, too. Of what was spent the
   * sums stay, so that limits hold. Epochs that run now stay reported.
   *
   * @throws StateUnusable this page has stopped, but that could not be written down.
   */
  async disable(options?: { readonly forget?: boolean }): Promise<void> {
    void this.#halt();
    await this.#consents(async () => {
      await this.#halt(); // an enable() may have ended since
      this.#drop(DISABLED, this.#reporter.learner?.forget());
      this.#drop(DISABLED, await this.#sender.discard());
      const off = (consent: Consent) => ({
        ...consent,
        generation: turned(consent.generation, false),
      });
      // The no first: forgetting needs a part that a page may fail to load.
      const device = await this.#state.change(
        (device) => ({ ...device, consent: off(device.consent), events: null }),
        {
          insists: true,
        },
      );
      const forget = options?.forget ? (await load("more")).forget : () => device;
      await this.#reporter.stand(await forget(this.#state));
    });
  }

  /** Reports again. What was reported while off is not sent. @throws StateUnusable it stays off. */
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
   * Keeps the most epsilon that this person allows a report; null for what the metric asks.
   *
   * Metrics with tiers report at the largest that is allowed; others not at all if above it.
   *
   * maxLocal: the most that any report may say to whoever looks; as much as maxEpsilon where it is not
   * said. With it a metric with a crowd is held to maxEpsilon by the promise of its crowd.
   *
   * @throws BadParameter neither null nor a number from 0 on.
   */
  async prefer(
    maxEpsilon: number | null,
    options?: { readonly maxLocal?: number | null },
  ): Promise<void> {
    const { preferring } = await load("more");
    const device = await this.#state.change(preferring(maxEpsilon, options?.maxLocal), {
      insists: true,
    });
    await this.#reporter.stand(device);
  }

  /** What left this device and what is left of each budget, for this person to see. */
  async ledger(): Promise<LedgerView> {
    await this.#sender.enter();
    const { device, ...reports } = await this.#state.all();
    const { view } = await load("more");
    return view(this.#bundle, device, reports, this.#state.now(), !!this.#reporter.local);
  }

  /**
   * Calls back whenever `ledger()` has come to say something else by what this page or process did: a
   * payload was kept, sent or given up. Returns what ends it.
   */
  watch(changed: () => void): () => void {
    const { watching } = this.#sender;
    watching.add(changed);
    return () => {
      watching.delete(changed);
    };
  }

  /** How many payloads wait to be sent. */
  async waiting(): Promise<number> {
    const { waiting } = await this.#state.all();
    return waiting.length + this.#reporter.drawn.length;
  }

  /** How many payloads this page or process gave up, by reason. */
  get dropped(): Readonly<Record<string, number>> {
    return { ...this.#diagnostics.dropped };
  }

  /** How often report() said what, in this page or process. */
  get outcomes(): Readonly<Partial<Record<Outcome, number>>> {
    return { ...this.#diagnostics.outcomes };
  }

  /** How many values learn() clipped to their range in this page or process, by model. */
  get clipped(): Readonly<Record<string, number>> {
    return { ...this.#reporter.learner?.clipped };
  }

  /** Whether there is no bundle, as nothing can be kept here. */
  get #isNobodys(): boolean {
    return !this.#bundle.line.length;
  }

  #halt(): Promise<void> {
    this.#reporter.switch(false);
    return this.#sender.stop();
  }

  #drop(reason: string, streams: readonly string[] = []): void {
    this.#diagnostics.drop(streams.map((stream) => ({ stream, reason })));
  }

  async #sendUntil(until: number, patient: boolean): Promise<boolean> {
    const sender = this.#sender;
    sender.reason = "";
    await sender.enter(); // before anything that a server may hold up
    await sender.fetchModels(until);
    await sender.enter();
    let hasFetched = false;
    for (;;) {
      if (!patient && sender.reason === UNREACHABLE) return false;
      const outcome = await sender.attempt(until);
      if (outcome === "empty" && !(performance.now() >= until)) {
        // What is there is sent first: an issuer that cannot be reached keeps back what needs it alone.
        if (sender.purse && !hasFetched) {
          hasFetched = true;
          await sender.fetchTokens(until);
          continue;
        }
        const { waiting } = await this.#state.all();
        const remaining = waiting.filter((report) => !this.#reporter.isHeld(report));
        // What somebody else is sending may have arrived in a moment.
        const others = remaining.some((report) => isClaimed(report, this.#state.now()));
        if (!others) return !remaining.length && !this.#reporter.learner?.awaits;
      }
      const seconds =
        outcome instanceof TryAgain ? soon(sender.failures, outcome.afterSeconds) : LOOK_SECONDS;
      const wait = outcome === "sent" ? 0 : 1000 * seconds;
      if (!(performance.now() + wait < until)) return false;
      await new Promise((resolve) => setTimeout(resolve, wait));
      hasFetched = false;
    }
  }

  #outcomeOf(call: string, metric: string, attempt: () => Outcome, value?: Value): Outcome {
    if (this.#closing) return "closed";
    if (this.#isNobodys) return this.#diagnostics.count("no_state");
    const outcome = this.#diagnostics.count(this.#checked(call, metric, attempt, value));
    if (["queued", "awaits_state", "counted", "noted"].includes(outcome)) this.#background.wake();
    return outcome;
  }

  #checked(call: string, metric: string, attempt: () => Outcome, value?: Value): Outcome {
    try {
      return attempt();
    } catch (error) {
      const mistake =
        error instanceof UnknownMetric
          ? "unknown_metric"
          : error instanceof ValueOutOfDomain
            ? "not_a_value"
            : "failed";
      if (this.#strict) {
        this.#diagnostics.count(mistake);
        throw this.#hinted(error, this.#bundle.metrics.get(metric), value);
      }
      const metricName = this.#bundle.metrics.has(metric) ? metric : "";
      this.#diagnostics.warnOnce(
        `${mistake} ${metricName}`,
        `${call} is used wrongly: ${readable(error)}`,
      );
      return mistake;
    }
  }
}

function refuseOutside(name: string, value: number, max: number): void {
  if (!(value >= 0 && value <= max)) {
    throw new BadParameter(`${name} ${value} is outside [0, ${max}]`);
  }
}
