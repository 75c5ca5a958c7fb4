/** What a client counts, and what it says of that: once each, to the console. No value is in it. */
import { metricNameOf } from "../catalog/tiers.js";
import type { Outcome } from "./outcome.js";
import type { Dropped } from "./state.js";

/** Told of every payload that is given up: the metric, and why. */
export type OnDrop = (metric: string, reason: string) => void;

/** One page's or process's own. Nothing vanishes uncounted. */
export class Diagnostics {
  readonly outcomes: Partial<Record<Outcome, number>> = {};
  readonly dropped: Record<string, number> = {};
  readonly #warned = new Set<string>();

  constructor(readonly onDrop: OnDrop | undefined) {}

  /** Counts what report() said. */
  count(outcome: Outcome): Outcome {
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    return outcome;
  }

  /** Counts payloads that were given up, and tells the app. */
  drop(dropped: readonly Dropped[]): void {
    for (const { stream, reason } of dropped) {
      this.dropped[reason] = (this.dropped[reason] ?? 0) + 1;
      this.warnOnce(reason, `reports are dropped: ${reason}`);
      // The app's own fault, now or later, must not end the sending.
      new Promise<unknown>((resolve) => {
        resolve(this.onDrop?.(metricNameOf(stream), reason));
      }).catch(() => {
        this.warnOnce("onDrop", "onDrop failed");
      });
    }
  }

  /** Says something the first time that it is about this: of few things, for all are kept. */
  warnOnce(subject: string, message: string): void {
    if (this.#warned.has(subject)) return;
    this.#warned.add(subject);
    console.warn(`hubbub: ${message}`);
  }
}
