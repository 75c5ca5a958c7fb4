/**
 * Submissions from Node, over HTTPS.
 *
 * PRIVACY: a request has a length, a type and its host, and nothing that tells devices, versions or
 * visits apart; so it is made by node:https and not by fetch, which adds a User-Agent. A redirect is
 * not followed: whoever answers may not send reports elsewhere.
 */
import { request as plainly, type IncomingMessage } from "node:http";
import { Agent, request } from "node:https";

import type { Post, Transport } from "../client/transport.js";
import { BadParameter, TryAgain } from "../errors.js";
import { PATH, TYPE, type Answer } from "../transport/submission.js";

const LARGEST_ANSWER_BYTES = 1 << 20;

/**
 * A shuffler. address: https://HOST:PORT, and a path that a proxy of the operator's may want. roots: as
 * a bundle's.
 *
 * @throws BadParameter the address is none of HTTPS.
 */
export function httpsTransport(address: string, roots: string | null): Transport {
  if (!address.startsWith("https://") || !URL.canParse(address)) {
    throw new BadParameter(
      "the shuffler's address is not of HTTPS; give shuffler: https://HOST:PORT",
    );
  }
  const url = address.replace(/\/+$/, "") + PATH;
  const post = httpsPost(roots);
  return { post: (body, signal) => post(url, TYPE, body, signal) };
}

/** A POST over HTTPS. roots: PEM of the authorities to chain to; null for the system's. */
export function httpsPost(roots: string | readonly string[] | null): Post {
  return (url, type, body, signal, headers = {}) => {
    return posted(new URL(url), { ...headers, "content-type": type }, roots, body, signal);
  };
}

async function posted(
  url: URL,
  told: Readonly<Record<string, string>>,
  roots: string | readonly string[] | null,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<Answer> {
  // A connection, and a session of TLS, of one call alone: no ticket tells two visits apart.
  const agent = new Agent({
    keepAlive: false,
    maxCachedSessions: 0,
    ...(roots ? { ca: [roots].flat() } : {}),
  });
  const headers = { ...told, "content-length": body.length };
  try {
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      // In the clear on this machine alone: whoever has the address has looked at it.
      const how = { headers, method: "POST", signal };
      (url.protocol === "http:"
        ? plainly(url, { ...how, agent: false }, resolve)
        : request(url, { ...how, agent }, resolve)
      )
        .on("error", reject)
        .end(body);
    });
    return {
      status: message.statusCode ?? 0,
      headers: Object.fromEntries(
        Object.entries(message.headers).map(([name, value]) => [name, [value].flat().join(", ")]),
      ),
      body: await read(message),
    };
  } catch (error) {
    if (error instanceof TryAgain) throw error;
    throw new TryAgain(signal.aborted ? "deadline_exceeded" : "unavailable");
  } finally {
    agent.destroy();
  }
}

async function read(message: IncomingMessage): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of message as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > LARGEST_ANSWER_BYTES) throw new TryAgain("no_shuffler");
    parts.push(part);
  }
  return Buffer.concat(parts);
}
