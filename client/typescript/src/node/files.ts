/**
 * A device's storage in Node: a folder for the state, and a witness file beside the folder.
 *
 * The state is one file, `state.N`. A step reads the newest file and links the next one under its
 * name, which only one process can do; a process that comes second reads again and repeats its
 * step. So no process holds a lock when it dies, and a file is either complete or absent.
 */
import { createHash, randomInt, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { listed, number, table } from "../catalog/json.js";
import { emptyRows, rowsOf, type StoredContents } from "../client/memory.js";
import type { PastReport, Rows, Storage, StoredReport } from "../client/storage.js";
import { workQueue } from "../client/work_queue.js";
import { StateUnusable } from "../errors.js";
import { after, within } from "../time_limits.js";

/** To open a named pipe would otherwise wait for a writer, and the program could not end. */
export const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK;
const STATE = "state.";
const NUMBER_PATTERN = /^[0-9]{1,15}$/;
const OWNER_ONLY = 0o600;
const OWNERS_FOLDER = 0o700;
// A process that was paused for more than this many steps assumes that its own step failed and
// repeats it. Then the ledger charges too much, and a report is sent twice with the same bytes,
// which counts once.
const STEPS = 200;
const MOST_TRIES = 1000;
const LONGEST_PAUSE_MS = 20;
const STEP_SECONDS = 10; // a network disk may not answer at all

/** The storage of one device, in a folder. */
export class FolderStorage implements Storage {
  /**
   * Serializes work within this process; between processes, a step that came second is repeated.
   */
  readonly alone = workQueue();

  constructor(readonly folder: string) {}

  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#tried(async (limit) => {
      for (let tries = 0; tries < MOST_TRIES; tries += 1) {
        const { last: stateNumber, steps, contents } = await this.#load();
        const previousBody = bodyOf(contents);
        const result = await work(rowsOf(contents));
        const body = bodyOf(contents);
        // The caller already got an error that nothing was written.
        limit.throwIfAborted();
        if (body === previousBody || (await this.#committed(stateNumber, steps, body)))
          return result;
        await sleep(randomInt(LONGEST_PAUSE_MS));
      }
      throw new StateUnusable(`${this.folder}: other processes write all the time; try again`);
    });
  }

  readWitness(): Promise<string | null> {
    return this.#tried(async () => {
      for (const witnessNumber of (await numbered(...this.#witness)).reverse()) {
        const witness = await readIfThere(this.#witnessAt(witnessNumber));
        if (witness !== null) return witness;
      }
      return null;
    });
  }

  /**
   * The number of the change is part of the file's name, so an older witness never replaces a newer
   * one.
   */
  writeWitness(witness: string): Promise<void> {
    return this.#tried(async () => {
      const commits = number(table(JSON.parse(witness))["commits"]);
      const draft = await writeDraft(this.#witnessAt(commits), witness);
      await rename(draft, this.#witnessAt(commits));
      await synced(dirname(this.folder));
      for (const witnessNumber of await numbered(...this.#witness)) {
        if (witnessNumber < commits) await rm(this.#witnessAt(witnessNumber), { force: true });
      }
    });
  }

  close(): void {
    // Nothing to close: no file stays open.
  }

  get #witness(): [string, string] {
    return [dirname(this.folder), `${basename(this.folder)}.witness.`];
  }

  #witnessAt(commits: number): string {
    return join(...this.#witness) + String(commits);
  }

  /** The newest intact state. A damaged file is set aside, and then the witness applies. */
  async #load(): Promise<{ last: number; steps: readonly string[]; contents: StoredContents }> {
    for (;;) {
      const stateNumber = (await numbered(this.folder, STATE)).pop();
      if (stateNumber === undefined) return { last: 0, steps: [], contents: emptyRows() };
      const path = join(this.folder, `${STATE}${stateNumber}`);
      const content = await readIfThere(path);
      if (content === null) continue; // another process has replaced it meanwhile
      try {
        return { last: stateNumber, ...stateIn(content) };
      } catch {
        const mark = randomUUID();
        await rename(path, join(this.folder, `damaged.${stateNumber}.${mark}`)).catch(unlessGone);
      }
    }
  }

  /** Tries to store this state as the next one. Resolves to false if another process was faster. */
  async #committed(stateNumber: number, steps: readonly string[], body: string): Promise<boolean> {
    const [nextNumber, step] = [stateNumber + 1, randomUUID()];
    const draft = await writeDraft(join(this.folder, "draft"), stated([...steps, step], body));
    try {
      await link(draft, join(this.folder, `${STATE}${nextNumber}`));
    } catch (error) {
      if (codeOf(error) === "EEXIST") return false;
      throw error;
    } finally {
      await rm(draft, { force: true });
    }
    await synced(this.folder);
    const numbers = await numbered(this.folder, STATE);
    for (const stale of numbers.slice(0, -1)) {
      await rm(join(this.folder, `${STATE}${stale}`), { force: true });
    }
    if (numbers[numbers.length - 1] === nextNumber) return true;
    // Newer files exist: either other processes continued from this step, or the name had become
    // free again.
    return (await this.#load()).steps.includes(step);
  }

  async #tried<T>(work: (limit: AbortSignal) => Promise<T>): Promise<T> {
    try {
      const limit = after(STEP_SECONDS);
      const creation = makeFolder(this.folder).then(() => work(limit));
      return await within(limit, creation, () => {
        return new StateUnusable(
          `${this.folder}: no answer in ${STEP_SECONDS} s; is its disk available?`,
        );
      });
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      throw new StateUnusable(`${this.folder}: ${code}; free space there, or name another folder`, {
        cause: error,
      });
    }
  }
}

/** Makes a folder, and those above it. Node's own recursion never ends in /proc. */
async function makeFolder(folder: string): Promise<void> {
  const made = () => mkdir(folder, OWNERS_FOLDER);
  try {
    await made().catch(async (error: unknown) => {
      if (codeOf(error) !== "ENOENT" || dirname(folder) === folder) throw error;
      await makeFolder(dirname(folder));
      await made();
    });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

/** The numbers of files of this name, ascending. */
async function numbered(folder: string, name: string): Promise<number[]> {
  const ends = (await readdir(folder))
    .filter((file) => file.startsWith(name))
    .map((file) => file.slice(name.length));
  return ends
    .filter((end) => NUMBER_PATTERN.test(end))
    .map(Number)
    .sort((first, second) => first - second);
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, { encoding: "utf8", flag: READ_ONLY });
  } catch (error) {
    unlessGone(error);
    return null;
  }
}

/**
 * Writes content to a new file beside a path and flushes it to the disk; resolves to the file's
 * path.
 */
async function writeDraft(path: string, content: string): Promise<string> {
  const draft = `${path}.${randomUUID()}.draft`;
  const file = await open(draft, "wx", OWNER_ONLY);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return draft;
}

async function synced(folder: string): Promise<void> {
  if (process.platform === "win32") return; // Windows cannot open a folder
  const file = await open(folder, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The rows as JSON. */
function bodyOf({ device, waiting, past, last }: StoredContents): string {
  return JSON.stringify({
    ...{ device, last },
    waiting: waiting.map((report) => {
      return { ...report, sealed: base64(report.sealed), payload: base64(report.payload) };
    }),
    past: past.map((report) => ({ ...report, payload: base64(report.payload) })),
  });
}

/** The content of a state file: a checksum, the identifiers of the last steps, and all rows. */
function stated(steps: readonly string[], body: string): string {
  const content = `${steps.slice(-STEPS).join(" ")}\n${body}`;
  return `${sum(content)}\n${content}`;
}

function stateIn(content: string): { steps: readonly string[]; contents: StoredContents } {
  const [checksum = "", steps = "", body = ""] = content.split("\n");
  if (checksum !== sum(`${steps}\n${body}`)) throw new TypeError("the checksum does not match");
  const { device, waiting, past, last } = table(JSON.parse(body));
  const rows = (list: unknown) => listed(list).map((value) => table(value));
  const contents = {
    device,
    last: number(last),
    waiting: rows(waiting).map((row) => {
      return { ...row, sealed: bytes(row["sealed"]), payload: bytes(row["payload"]) };
    }) as unknown as StoredReport[],
    past: rows(past).map((row) => {
      return { ...row, payload: bytes(row["payload"]) };
    }) as unknown as PastReport[],
  };
  return { steps: steps.split(" "), contents };
}

function sum(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

function bytes(base64: unknown): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(String(base64), "base64"));
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}

function unlessGone(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}
