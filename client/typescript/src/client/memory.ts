/** A device that ends with the page or process: for tests, and for whoever is to be captured. */
import { HISTORY, type PastReport, type Rows, type Storage, type StoredReport } from "./storage.js";
import { turns } from "./turns.js";

/** Rows in memory. */
export interface Held {
  device: unknown;
  waiting: StoredReport[];
  past: PastReport[];
  last: number;
}

/** Rows of nobody. */
export function nothing(): Held {
  return { device: undefined, waiting: [], past: [], last: 0 };
}

/** Reads and writes rows in memory. */
export function rowsOf(held: Held): Rows {
  return {
    device: () => Promise.resolve(held.device),
    keepDevice: (document) => {
      held.device = document;
      return Promise.resolve();
    },
    waiting: () => Promise.resolve([...held.waiting]),
    keep(report) {
      const id = report.id ?? (held.last += 1);
      const others = held.waiting.filter((other) => other.id !== id);
      held.waiting = [...others, { ...report, id }].sort(
        (one, other) => (one.id ?? 0) - (other.id ?? 0),
      );
      return Promise.resolve();
    },
    remove: (id) => {
      held.waiting = held.waiting.filter((report) => report.id !== id);
      return Promise.resolve();
    },
    past: () => Promise.resolve([...held.past]),
    remember: (report) => {
      held.past = [...held.past, report].slice(-HISTORY);
      return Promise.resolve();
    },
    clear: () => {
      [held.waiting, held.past] = [[], []];
      return Promise.resolve();
    },
  };
}

/** Keeps everything in memory. */
export class MemoryStorage implements Storage {
  #held = nothing();
  #witness: string | null = null;
  readonly alone = turns();

  async transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const draft = { ...this.#held };
    const told = await work(rowsOf(draft));
    this.#held = draft;
    return told;
  }

  readWitness(): Promise<string | null> {
    return Promise.resolve(this.#witness);
  }

  writeWitness(witness: string): Promise<void> {
    this.#witness = witness;
    return Promise.resolve();
  }

  close(): void {
    // There is nothing to let go of.
  }
}
