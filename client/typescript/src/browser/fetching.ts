/**
 * Bundles for a page or worker, and its submissions, by fetch.
 *
 * PRIVACY: no cookie, no referrer, no cache; a redirect is not followed. The shuffler neither reads
 * nor stores the headers that a browser adds (User-Agent, Origin); a relay does not see them.
 */
import type { Post, Transport } from "../client/transport.js";
import { BadParameter, tooLate, TryAgain } from "../errors.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { MAX_BYTES } from "../catalog/bundle.js";
import { after, within } from "../time_limits.js";
import { PATH, TYPE, type Answer } from "../transport/submission.js";

const LARGEST_ANSWER_BYTES = 1 << 20;
const BUNDLE_SECONDS = 20;

/** The content of a bundle, which is fetched if it is an address. */
export async function contentOf(bundle: string | URL | Bytes): Promise<Bytes> {
  if (bundle instanceof Uint8Array) return bundle;
  const signal = after(BUNDLE_SECONDS);
  const response = await fetch(bundle, { credentials: "omit", signal });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const content = await within(signal, bodyOf(response, MAX_BYTES));
  if (!content) throw new Error("it has no end");
  return content;
}

/** A POST by fetch. */
export const fetchPost: Post = async (url, type, body, signal, headers = {}) => {
  try {
    // Node's fetch may forget the signal once the headers are there.
    const answer = fetch(url, { ...postOptions(type, body, headers), signal }).then(answerOf);
    return await within(signal, answer);
  } catch (error) {
    if (error instanceof TryAgain) throw error;
    throw signal.aborted ? tooLate() : new TryAgain("unavailable");
  }
};

/** The whole body, or null if it is longer than `maxBytes` or its stream breaks off. */
async function bodyOf({ body }: Response, maxBytes: number): Promise<Bytes | null> {
  const reader = body?.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const part = await reader?.read();
    if (!part?.value) return concatenated(...parts);
    parts.push(part.value);
    size += part.value.length;
    if (size > maxBytes) {
      void reader?.cancel();
      return null;
    }
  }
}

/**
 * A transport to a shuffler at https://HOST:PORT, or to a local process that forwards reports to a
 * shuffler.
 *
 * @throws BadParameter the address is not an HTTPS address.
 */
export function fetchTransport(address: string): Transport {
  if (!/^https:\/\/|^http:\/\/(127\.0\.0\.1|localhost):/.test(address)) {
    throw new BadParameter("give shuffler: https://HOST:PORT");
  }
  const url = address.replace(/\/+$/, "") + PATH;
  return {
    post: (body, signal) => fetchPost(url, TYPE, body, signal),
    last(body) {
      void fetch(url, { ...postOptions(TYPE, body), keepalive: true }).catch(() => undefined);
    },
  };
}

function postOptions(type: string, body: Uint8Array<ArrayBuffer>, overrides = {}): RequestInit {
  return {
    method: "POST",
    body,
    headers: { "content-type": type, ...overrides },
    credentials: "omit",
    referrerPolicy: "no-referrer",
    cache: "no-store",
    redirect: "error",
  };
}

async function answerOf(response: Response): Promise<Answer> {
  const body = await bodyOf(response, LARGEST_ANSWER_BYTES);
  if (!body) throw new TryAgain("no_shuffler");
  return { status: response.status, headers: Object.fromEntries(response.headers), body };
}
