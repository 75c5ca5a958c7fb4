/**
 * Submissions from a page or worker, by fetch.
 *
 * PRIVACY: no cookie, no referrer, no cache; a redirect is not followed. What a browser adds of itself
 * (User-Agent, Origin) the shuffler neither looks at nor keeps; a relay would not see it either.
 */
import type { Post, Transport } from "../client/transport.js";
import { BadParameter, tooLate, TryAgain } from "../errors.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { within } from "../within.js";
import { PATH, TYPE, type Answer } from "../transport/submission.js";

const LARGEST_ANSWER_BYTES = 1 << 20;

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

/** All of a body of at most so many bytes; null for a longer one, or one without an end. */
export async function bodyOf({ body }: Response, maxBytes: number): Promise<Bytes | null> {
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
 * A shuffler at https://HOST:PORT, or what passes reports on to one on this machine.
 *
 * @throws BadParameter the address is none of HTTPS.
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
