/** Storage in memory, which ends with the page or process: for tests, and for capturing reports. */
import { HISTORY, type PastReport, type Rows, type Storage, type StoredReport } from "./storage.js";
import { workQueue } from "./work_queue.js";

/** Rows in memory. */
export interface StoredContents {
  device: unknown;
  waiting: StoredReport[];
  past: PastReport[];
  last: number;
}

/** Empty rows. */
export function emptyRows(): StoredContents {
  return { device: undefined, waiting: [], past: [], last: 0 };
}

/** Reads and writes rows in memory. */
export function rowsOf(contents: StoredContents): Rows {
  return {
    device: () => Promise.resolve(contents.device),
    keepDevice: (document) => {
      contents.device = document;
      return Promise.resolve();
    },
    waiting: () => Promise.resolve([...contents.waiting]),
    keep(report) {
      const id = report.id ?? (contents.last += 1);
      const otherReports = contents.waiting.filter((other) => other.id !== id);
      contents.waiting = [...otherReports, { ...report, id }].sort(
        (first, second) => (first.id ?? 0) - (second.id ?? 0),
      );
      return Promise.resolve();
    },
    remove: (id) => {
      contents.waiting = contents.waiting.filter((report) => report.id !== id);
      return Promise.resolve();
    },
    past: () => Promise.resolve([...contents.past]),
    remember: (report) => {
      contents.past = [...contents.past, report].slice(-HISTORY);
      return Promise.resolve();
    },
    clear: () => {
      [contents.waiting, contents.past] = [[], []];
      return Promise.resolve();
    },
  };
}

/** Keeps everything in memory. */
export class MemoryStorage implements Storage {
  #contents = emptyRows();
  #witness: string | null = null;
  readonly alone = workQueue();

  async transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const draft = { ...this.#contents };
    const result = await work(rowsOf(draft));
    this.#contents = draft;
    return result;
  }

  readWitness(): Promise<string | null> {
    return Promise.resolve(this.#witness);
  }

  writeWitness(witness: string): Promise<void> {
    this.#witness = witness;
    return Promise.resolve();
  }

  close(): void {
    // There is nothing to close.
  }
}
