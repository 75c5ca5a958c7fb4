/** Stores and sends reports while the app runs, by timers that do not keep a program alive. */
import { HubbubError, StateUnusable } from "../errors.js";
import type { Diagnostics } from "./diagnostics.js";
import type { Sender } from "./sender.js";
import { callLater } from "../time_limits.js";
import type { Waits } from "./waits.js";

const STATE_RETRY_SECONDS = 5;
const LOOK_SECONDS = 86_400; // a timer cannot wait for months

/** The background work of one page or process. */
export class Background {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #looking: ReturnType<typeof setTimeout> | undefined;
  #entered: Promise<void> = Promise.resolve();
  #woken = false;
  #ended = false;

  /** waits: null disables sending in the background. */
  constructor(
    readonly sender: Sender,
    readonly waits: Waits | null,
    readonly diagnostics: Diagnostics,
    readonly onUnusable: () => void,
  ) {}

  /** Looks for reports that an earlier page left. */
  start(): void {
    this.#sendIn(this.waits?.beforeSending(true));
  }

  /** Stores new reports soon: together with all others of the current task. */
  wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    this.#entered = this.#entered.then(() => this.#enter());
  }

  /** Resolves after all reports so far were stored or could not be stored. */
  settled(): Promise<void> {
    return this.#entered;
  }

  /** Stops permanently. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#looking);
    this.sender.reporter.learner?.end();
  }

  async #enter(): Promise<void> {
    this.#woken = false;
    try {
      await this.sender.enter();
      this.#sendIn(this.waits?.beforeSending(false));
      this.#look();
      this.#fetch();
      this.#learn();
    } catch (error) {
      this.failed(error);
      this.onUnusable();
      if (!this.#ended)
        callLater(STATE_RETRY_SECONDS, () => {
          this.wake();
        });
    }
  }

  /** Runs again after the end of an epoch that may need a report. */
  #look(): void {
    const { waits } = this;
    const toCover = this.sender.reporter.secondsToCover();
    const seconds = Math.min(toCover, this.sender.secondsToTokens());
    if (!waits || this.#ended || seconds === Infinity) return;
    clearTimeout(this.#looking);
    this.#looking = callLater(Math.min(seconds, LOOK_SECONDS), () => {
      if (seconds === toCover) this.#sendIn(waits.afterEpoch());
      this.wake();
    });
  }

  /** Requests due tokens; reports that wait for them are sent a while later. */
  #fetch(): void {
    const { waits } = this;
    if (!waits || this.#ended || this.sender.secondsToTokens() === Infinity) return;
    this.sender.fetchTokens().then(
      (hasTokens) => {
        if (hasTokens) this.#sendIn(waits.beforeSending(false));
        this.#look();
      },
      (error: unknown) => {
        this.failed(error);
      },
    );
  }

  /** Requests the state of models that examples wait for. */
  #learn(): void {
    if (this.waits && !this.#ended) this.sender.reporter.learner?.goOnAsking(this);
  }

  #sendIn(seconds = 0): void {
    const { waits } = this;
    if (!waits || this.#ended || this.#timer !== undefined) return;
    this.#timer = callLater(seconds, () => {
      this.#timer = undefined;
      void this.#send(waits);
    });
  }

  async #send(waits: Waits): Promise<void> {
    try {
      const outcome = await this.sender.attempt();
      if (outcome === "sent") this.#sendIn(0);
      else if (outcome !== "empty") {
        this.#sendIn(waits.beforeTryingAgain(this.sender.failures, outcome.afterSeconds));
      }
    } catch (error) {
      this.failed(error);
      this.#sendIn(STATE_RETRY_SECONDS);
    }
  }

  /** Warns once about a failure. */
  failed(error: unknown): void {
    if (error instanceof StateUnusable) {
      this.diagnostics.warnOnce("state", `reports wait in memory: ${error.message}`);
    } else {
      this.diagnostics.warnOnce("fault", `sending failed: ${readable(error)}`);
    }
  }
}

/**
 * The message of an error of this package, which contains no value; of other errors only the type.
 */
export function readable(error: unknown): string {
  if (error instanceof HubbubError) return error.message;
  return error instanceof Error ? error.name : typeof error;
}
