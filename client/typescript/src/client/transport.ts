/** Transport: how reports go to a shuffler. A seam: fetch in browsers, node:https, a fake in tests. */
import type { Answer } from "../transport/submission.js";

/** One submission at a time. */
export interface Transport {
  /**
   * Posts a SubmitRequest, and says what came back. signal: ends it.
   *
   * @throws TryAgain nothing came back.
   */
  post(body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<Answer>;
  /** Posts one whose answer nobody will hear, as a page goes away; of at most 64 KiB. */
  last?(body: Uint8Array<ArrayBuffer>): void;
}

/**
 * One request of HTTP, and what came back. type: of the body.
 *
 * @throws TryAgain nothing came back.
 */
export type Post = (
  url: string,
  type: string,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/** The longest submission that `last` takes, as browsers have it for all that outlives a page. */
export const LAST_BYTES = 60_000;
