/** What enters and sends while the app goes on, by timers that keep no program alive. */
import { HubbubError, StateUnusable } from "../errors.js";
import type { Diagnostics } from "./diagnostics.js";
import type { Sender } from "./sender.js";
import { later } from "../within.js";
import type { Waits } from "./waits.js";

const STATE_RETRY_SECONDS = 5;
const LOOK_SECONDS = 86_400; // timers have no months

/** One page's or process's. */
export class Background {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #looking: ReturnType<typeof setTimeout> | undefined;
  #entered: Promise<void> = Promise.resolve();
  #woken = false;
  #ended = false;

  /** waits: null for sending nothing by itself. */
  constructor(
    readonly sender: Sender,
    readonly waits: Waits | null,
    readonly diagnostics: Diagnostics,
    readonly onUnusable: () => void,
  ) {}

  /** Looks for what a page before has left. */
  start(): void {
    this.#sendIn(this.waits?.beforeSending(true));
  }

  /** There is something to enter: at once, together with what is reported in this task. */
  wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    this.#entered = this.#entered.then(() => this.#enter());
  }

  /** Resolves once all that was reported so far is kept, or could not be. */
  settled(): Promise<void> {
    return this.#entered;
  }

  /** Ends, for good. */
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
        later(STATE_RETRY_SECONDS, () => {
          this.wake();
        });
    }
  }

  /** Enters again once an epoch is over of which something may have to be said. */
  #look(): void {
    const { waits } = this;
    const toCover = this.sender.reporter.secondsToCover();
    const seconds = Math.min(toCover, this.sender.secondsToTokens());
    if (!waits || this.#ended || seconds === Infinity) return;
    clearTimeout(this.#looking);
    this.#looking = later(Math.min(seconds, LOOK_SECONDS), () => {
      if (seconds === toCover) this.#sendIn(waits.afterEpoch());
      this.wake();
    });
  }

  /** Asks for tokens that are due; what waits for them goes a while after. */
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

  /** Asks for the state that examples wait for. */
  #learn(): void {
    if (this.waits && !this.#ended) this.sender.reporter.learner?.goOnAsking(this);
  }

  #sendIn(seconds = 0): void {
    const { waits } = this;
    if (!waits || this.#ended || this.#timer !== undefined) return;
    this.#timer = later(seconds, () => {
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

  /** Says once what went wrong. */
  failed(error: unknown): void {
    if (error instanceof StateUnusable) {
      this.diagnostics.warnOnce("state", `reports wait in memory: ${error.message}`);
    } else {
      this.diagnostics.warnOnce("fault", `sending failed: ${readable(error)}`);
    }
  }
}

/** What an error says, where it is ours and so holds no value; of others the type alone. */
export function readable(error: unknown): string {
  if (error instanceof HubbubError) return error.message;
  return error instanceof Error ? error.name : typeof error;
}
