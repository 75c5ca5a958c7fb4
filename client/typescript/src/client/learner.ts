/**
 * The learner: a page's or process's state of models, and the examples that wait for it.
 *
 * Both are only in memory: a device uses one state of a model, that of its round, once. As
 * client/hubbub/client/learner.py; loaded only if a bundle has models.
 */
import { signerOf } from "../catalog/bundle.js";
import { ownValue } from "../catalog/json.js";
import type { Example, Metric, ModelState, Tell } from "../catalog/metric.js";
import { ModelsRefused, openModels } from "../catalog/models/state.js";
import { GivenUp, TryAgain } from "../errors.js";
import { fieldsOf } from "../transport/protobuf.js";
import { meaningOf, type Answer } from "../transport/submission.js";
import type { Background } from "./background.js";
import type { Diagnostics } from "./diagnostics.js";
import type { Outcome } from "./outcome.js";
import type { Reporter } from "./reporter.js";
import { callLater } from "../time_limits.js";
import { uniform } from "./waits.js";

const MODELS_SECONDS = 60; // before the next request for the state of models
const MODELS = 3; // the field of SubmitResponse

/** The learner of one reporter. */
export class Learner {
  /** The number of values that were clipped to their range, by model. */
  readonly clipped: Record<string, number> = {};
  readonly #states = new Map<string, ModelState>();
  readonly #awaited = new Map<string, Example>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = false;

  constructor(
    readonly reporter: Reporter,
    readonly diagnostics: Diagnostics,
  ) {}

  /** Whether examples wait for the state of their model. */
  get awaits(): boolean {
    return this.#awaited.size > 0;
  }

  /** The function that makes this round's report; null if the needed state is missing. */
  teller({ name, model }: Metric, round: number, example: Example): Tell | null {
    return model?.teller(round, example, this.#states.get(name) ?? null) ?? null;
  }

  /**
   * Holds the last example while it awaits a state, and counts the example that is given up: the
   * previous one, or this one if it has awaited its state and is refused now.
   */
  settle(name: string, example: Example, outcome: Outcome): void {
    const previousExample = this.#awaited.get(name);
    this.#awaited.delete(name);
    if (outcome === "awaits_state") this.#awaited.set(name, example);
    const goesOn = previousExample === example && ["awaits_state", "queued"].includes(outcome);
    if (!previousExample || goesOn) return;
    const reason = previousExample === example ? outcome : "replaced";
    this.diagnostics.drop([{ stream: name, reason }]);
  }

  /** Counts the clipped values of an example. */
  count(name: string, { clipped }: Example): void {
    if (clipped) this.clipped[name] = (ownValue(this.clipped, name) ?? 0) + clipped;
  }

  /** Drops the waiting examples; returns their models. */
  forget(): string[] {
    const models = [...this.#awaited.keys()];
    this.#awaited.clear();
    return models;
  }

  /** Requests the state of models, repeatedly while examples wait for it. */
  goOnAsking(background: Background): void {
    if (this.#asking || !this.awaits) return;
    this.end();
    this.#timer = callLater(MODELS_SECONDS / 2 + uniform(MODELS_SECONDS), () => {
      this.goOnAsking(background);
    });
    this.#asking = true;
    void background.sender
      .fetchModels()
      .then(
        () => {
          if (this.reporter.drawn.length) background.wake();
        },
        (error: unknown) => {
          background.failed(error);
        },
      )
      .finally(() => {
        this.#asking = false;
      });
  }

  /** Stops the requests. */
  end(): void {
    clearTimeout(this.#timer);
  }

  /**
   * Requests the state of models, and draws the examples that waited for it. ask: submits no
   * report.
   *
   * PRIVACY: the request is empty. The server learns that this device takes part in some model's
   * round, which the report will show anyway.
   */
  async fetch(ask: () => Promise<Answer>): Promise<void> {
    const { diagnostics } = this;
    try {
      const answer = await ask();
      meaningOf(answer, 0);
      const models = new Map(fieldsOf(answer.body)).get(MODELS);
      if (typeof models === "object") await this.#hear(Uint8Array.from(models));
    } catch (error) {
      if (error instanceof TryAgain || error instanceof GivenUp) {
        diagnostics.warnOnce(error.reason, `models wait: ${error.message}`);
      } else if (error instanceof ModelsRefused) {
        diagnostics.warnOnce("models", `the state of models is refused: ${error.message}`);
      } else throw error;
    }
  }

  async #hear(stateBytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const { bundle } = this.reporter;
    try {
      const states = await openModels(stateBytes, signerOf(bundle));
      const problems = [...states].flatMap(([name, state]) => this.#problemOf(name, state) ?? []);
      if (problems.length) {
        throw new ModelsRefused(
          `${problems.join("; ")}: refused; serve the newest state of this bundle's models`,
        );
      }
    } finally {
      for (const [name, example] of [...this.#awaited]) {
        const metric = bundle.metrics.get(name);
        if (metric) this.settle(name, example, this.reporter.say(metric, example, ""));
      }
    }
  }

  /** Stores a state, or warns about what is wrong with it. */
  #problemOf(name: string, state: ModelState): string | null {
    const previousState = this.#states.get(name);
    const model = this.reporter.bundle.metrics.get(name)?.model;
    const [columns, weights] = [state.centre.length, state.weights.length];
    if (previousState && state.number < previousState.number) {
      return `"${name}" is of round ${state.number}, older than ${previousState.number}`;
    }
    if (
      previousState?.number === state.number &&
      JSON.stringify(state) !== JSON.stringify(previousState)
    ) {
      return `"${name}" has two different states of round ${state.number}; a server may be tracking devices`;
    }
    if (model && (columns !== model.columns || weights !== model.weights)) {
      return (
        `"${name}" has ${columns} columns and ${weights} weights, in the bundle ` +
        `${model.columns} and ${model.weights}`
      );
    }
    this.#states.set(name, state);
    return null;
  }
}
