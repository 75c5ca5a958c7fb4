/**
 * Transport: sends submissions to a shuffler. Implemented by fetch in browsers, by node:https in
 * Node, and by a fake shuffler in tests.
 */
import type { Answer } from "../transport/submission.js";

/** Sends one submission at a time. */
export interface Transport {
  /**
   * Posts a SubmitRequest and resolves to the server's answer. signal: ends the request when it is
   * aborted.
   *
   * @throws TryAgain no answer came back.
   */
  post(body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<Answer>;
  /**
   * Posts a submission while the page goes away; nobody reads the answer. body: at most LAST_BYTES.
   */
  last?(body: Uint8Array<ArrayBuffer>): void;
}

/**
 * Posts a body over HTTP and resolves to the answer. type: the media type of the body. signal: ends
 * the request when it is aborted.
 *
 * @throws TryAgain no answer came back.
 */
export type Post = (
  url: string,
  type: string,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/**
 * The maximum size of a submission in `last`, in bytes. Browsers allow 64 KiB for all requests that
 * outlive a page.
 */
export const LAST_BYTES = 60_000;
