/**
 * A device's storage in a browser: IndexedDB, locked by navigator.locks. The witness is in
 * CacheStorage.
 *
 * All tabs and workers of an origin share both places. If the browser clears only one of them, the
 * device still knows what it has reported.
 */
import {
  HISTORY,
  type PastReport,
  type Rows,
  type Storage,
  type StoredReport,
} from "../client/storage.js";
import { StateUnusable } from "../errors.js";
import { after, within } from "../time_limits.js";

const STORES = ["device", "waiting", "past"];
const VERSION = 1;
const THE_DEVICE = "device";
const STEP_SECONDS = 10;
const LOCK_SECONDS = 5;
const INSISTS_SECONDS = 1;
const PRIVATE_SECONDS = 2;
// Nothing is requested from this address; it is only the key under which the cache stores the text.
const WITNESS = "https://hubbub.invalid/witness";

/** The storage of one app of this origin. */
export class BrowserStorage implements Storage {
  readonly #name: string;
  #database: Promise<IDBDatabase> | undefined;

  constructor(app: string) {
    this.#name = `hubbub:${app}`;
  }

  /** Starts to open what the first step needs; the step itself reports a failure. */
  begin(): void {
    void this.#opened();
    this.readWitness().catch(() => undefined);
  }

  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#tried(async () => {
      try {
        return await this.#done(work);
      } catch (error) {
        if (!(error instanceof DOMException)) throw error;
        // Browsers drop connections without an event: iOS does so while a tab sleeps.
        this.close();
        if (error.name === "TimeoutError") throw error;
        return this.#done(work);
      }
    });
  }

  /** Runs one transaction, without a retry. */
  async #done<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const limit = after(STEP_SECONDS);
    const database = await within(limit, this.#opened());
    const transaction = database.transaction(STORES, "readwrite", { durability: "strict" });
    const completion = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => {
        resolve();
      };
      transaction.onabort = () => {
        reject(faultOf(transaction));
      };
    });
    try {
      const result = await within(limit, work(rowsOf(transaction)));
      await within(limit, completion);
      return result;
    } catch (error) {
      // The transaction may have ended already, for example because the disk is full; then it
      // stored nothing.
      completion.catch(() => undefined);
      try {
        transaction.abort();
      } catch {
        // The transaction has ended.
      }
      throw error;
    }
  }

  readWitness(): Promise<string | null> {
    return this.#answered(async () => {
      const response = await caches.match(WITNESS, { cacheName: this.#name });
      return response ? await response.text() : null;
    });
  }

  writeWitness(witness: string): Promise<void> {
    return this.#answered(async () =>
      (await caches.open(this.#name)).put(WITNESS, new Response(witness)),
    );
  }

  announce(generation: number): void {
    try {
      localStorage.setItem(this.#name, `${generation}`);
    } catch {
      // A worker has none, nor has a page that may keep nothing.
    }
  }

  announced(): string | null {
    try {
      return localStorage.getItem(this.#name);
    } catch {
      return null;
    }
  }

  async alone<T>(work: () => Promise<T>, insists = false): Promise<T> {
    const run = async () => {
      try {
        return { result: await work() };
      } catch (error) {
        return { error };
      }
    };
    const signal = after(insists ? INSISTS_SECONDS : LOCK_SECONDS);
    // A refused lock is a fault of the storage; an error of the work itself passes through.
    const outcome = await this.#tried(() =>
      navigator.locks.request(this.#name, { signal }, run).catch((error: unknown) => {
        // A transaction is atomic without the lock, too; only the witness may be written late.
        if (insists) return run();
        throw error;
      }),
    );
    if ("error" in outcome) throw outcome.error;
    return outcome.result;
  }

  close(): void {
    const database = this.#database;
    this.#database = undefined;
    database?.then(
      (connection) => {
        connection.close();
      },
      () => undefined,
    );
  }

  #opened(): Promise<IDBDatabase> {
    this.#database ??= this.#open();
    // After a failure the next call opens the database again.
    this.#database.catch(() => (this.#database = undefined));
    return this.#database;
  }

  async #open(): Promise<IDBDatabase> {
    // A WebView that may store nothing has null in its place.
    const factory = indexedDB as IDBFactory | null;
    if (!factory) throw new DOMException("", "NotSupportedError");
    const request = factory.open(this.#name, VERSION);
    request.onupgradeneeded = () => {
      const database = request.result;
      database.createObjectStore("device");
      database.createObjectStore("waiting", { keyPath: "id", autoIncrement: true });
      database.createObjectStore("past", { autoIncrement: true });
    };
    const database = await resultOf(request);
    database.onversionchange = () => {
      this.close(); // for a later version of hubbub, or when the user clears the storage
    };
    database.onclose = () => {
      this.#database = undefined;
    };
    return database;
  }

  #answered<T>(work: () => Promise<T>): Promise<T> {
    return this.#tried(() => within(after(STEP_SECONDS), work()));
  }

  async #tried<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
      throw new StateUnusable(`the spent budget cannot be stored: ${error.name}`, { cause: error });
    }
  }
}

/**
 * Whether this browser stores nothing permanently, as in a private window, as far as the browser
 * shows it.
 */
export async function isPrivate(): Promise<boolean> {
  try {
    // Firefox and Safari refuse this call in private windows. Other browsers are not checked:
    // WebKitGTK and WPE do not even have `storage`.
    if ("storage" in navigator && "getDirectory" in navigator.storage) {
      await within(after(PRIVATE_SECONDS), navigator.storage.getDirectory());
    }
    return false;
  } catch (error) {
    return (error as Error).name !== "TimeoutError";
  }
}

/** The result of a request. The transaction stays open while a caller awaits it. */
function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => {
      resolve(request.result);
    };
    request.onerror = () => {
      reject(faultOf(request));
    };
  });
}

/**
 * The error of a transaction; a general one where the browser closed the database or the code
 * aborted it.
 */
function faultOf({ error }: IDBRequest | IDBTransaction): DOMException {
  return error ?? new DOMException("", "AbortError");
}

function rowsOf(transaction: IDBTransaction): Rows {
  const [devices, waiting, past] = [
    transaction.objectStore("device"),
    transaction.objectStore("waiting"),
    transaction.objectStore("past"),
  ];
  return {
    device: () => resultOf<unknown>(devices.get(THE_DEVICE)),
    async keepDevice(document) {
      await resultOf(devices.put(document, THE_DEVICE));
    },
    waiting: () => resultOf(waiting.getAll() as IDBRequest<StoredReport[]>),
    async keep(report) {
      await resultOf(waiting.put(report));
    },
    remove: (id) => resultOf(waiting.delete(id)),
    past: () => resultOf(past.getAll() as IDBRequest<PastReport[]>),
    async remember(report) {
      await resultOf(past.put(report));
      if ((await resultOf(past.count())) <= HISTORY) return;
      const oldest = await resultOf(past.openCursor());
      if (oldest) await resultOf(oldest.delete());
    },
    async clear() {
      await resultOf(waiting.clear());
      await resultOf(past.clear());
    },
  };
}
