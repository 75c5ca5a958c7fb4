/**
 * Storage: where a device keeps what must outlive a page or a process. A seam: IndexedDB in browsers,
 * files in Node, memory in tests.
 */
import type { Bytes } from "../mechanisms/packing.js";
import type { Token } from "./token_wallet.js";

/** A payload that was sealed and charged, once and for all: a resend is the same bytes. */
export interface StoredReport {
  /** Given by the storage, growing; absent before it is kept. */
  readonly id?: number;
  readonly stream: string;
  readonly epoch: number;
  readonly keyId: number;
  readonly sealed: Bytes;
  /** Stays on the device, for its person to see. */
  readonly payload: Bytes;
  /** When it was drawn, and when the shuffler takes it no more, in seconds since 1970. */
  readonly made: number;
  readonly late: number;
  /** Until when it is somebody's who sends it, in seconds since 1970. */
  readonly claimed: number;
  /** The one that it goes with, for good, where reports need tokens. */
  readonly token?: Token;
}

/** A payload that has met its fate: "sent", or why it was given up. */
export interface PastReport {
  readonly stream: string;
  readonly epoch: number;
  readonly payload: Bytes;
  readonly made: number;
  readonly fate: string;
}

/** What one transaction reads and writes. Nothing else may be awaited in one. */
export interface Rows {
  /** The device's document; undefined where there is none. */
  device(): Promise<unknown>;
  keepDevice(document: unknown): Promise<void>;
  /** What waits, oldest first, each with its id. */
  waiting(): Promise<StoredReport[]>;
  /** Keeps a report, under its id if it has one. */
  keep(report: StoredReport): Promise<void>;
  remove(id: number): Promise<void>;
  /** The newest payloads that have met their fate, oldest first. */
  past(): Promise<PastReport[]>;
  remember(report: PastReport): Promise<void>;
  /** Forgets what waits, and what was. */
  clear(): Promise<void>;
}

/** How many payloads are remembered once they have met their fate. */
export const HISTORY = 1000;

/** One device's. Its methods reject with StateUnusable. */
export interface Storage {
  /**
   * All that `work` writes is kept, durably, or nothing; alone among all tabs, workers and processes.
   */
  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
  /** What the witness says, a second place that forgets apart from the first; null if nothing. */
  readWitness(): Promise<string | null>;
  writeWitness(witness: string): Promise<void>;
  /** Leaves the number of consent for announced() in all pages; not there where no page goes away. */
  announce?(generation: number): void;
  /** The number that any page left last, without waiting; null if it is not known. */
  announced?(): string | null;
  /**
   * Runs work alone among all tabs, workers and processes. insists: run it all the same where another
   * one does not end; only for a person's word, which has to hold.
   */
  alone<T>(work: () => Promise<T>, insists?: boolean): Promise<T>;
  close(): void;
}
