/** The counters of a client, and its warnings to the console, each once. They contain no value. */
import { metricNameOf } from "../catalog/tiers.js";
import type { Outcome } from "./outcome.js";
import type { DroppedReport } from "./state.js";

/** Called for every payload that is given up, with the metric and the reason. */
export type OnDrop = (metric: string, reason: string) => void;

/** The counters of one page or process. Every lost payload is counted. */
export class Diagnostics {
  readonly outcomes: Partial<Record<Outcome, number>> = {};
  readonly dropped: Record<string, number> = {};
  readonly #warned = new Set<string>();

  constructor(readonly onDrop: OnDrop | undefined) {}

  /** Counts an outcome of report(). */
  count(outcome: Outcome): Outcome {
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
    return outcome;
  }

  /** Counts payloads that were given up, and tells the app. */
  drop(dropped: readonly DroppedReport[]): void {
    for (const { stream, reason } of dropped) {
      this.dropped[reason] = (this.dropped[reason] ?? 0) + 1;
      this.warnOnce(reason, `reports are dropped: ${reason}`);
      // An error in the app's function must not stop the sending.
      new Promise<unknown>((resolve) => {
        resolve(this.onDrop?.(metricNameOf(stream), reason));
      }).catch(() => {
        this.warnOnce("onDrop", "onDrop failed");
      });
    }
  }

  /** Warns the first time for a key. There must be few keys, because all are remembered. */
  warnOnce(subject: string, message: string): void {
    if (this.#warned.has(subject)) return;
    this.#warned.add(subject);
    try {
      console.warn(`hubbub: ${message}`);
    } catch {
      // An app may have replaced it, and report() does not throw.
    }
  }
}
