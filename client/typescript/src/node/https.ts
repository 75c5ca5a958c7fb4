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
import { BadParameter, tooLate, TryAgain, UNREACHABLE } from "../errors.js";
import { later } from "../within.js";
import { PATH, TYPE } from "../transport/submission.js";

const LARGEST_ANSWER_BYTES = 1 << 20;
const LARGEST_HEAD_BYTES = 16 << 10; // whatever the program's own limit is
const MOST_EARLY_HINTS = 8; // answers before the answer, of which a server may send any number
const REACH_SECONDS = 1.5; // to connect, and to agree on TLS

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

/**
 * A POST over HTTPS. roots: PEM of the authorities to chain to; null for the system's.
 *
 * A network that is not there is known to be so soon. Each time that a server was not reached so soon
 * the next request waits twice as long, for networks that are slow.
 */
export function httpsPost(roots: string | readonly string[] | null): Post {
  let seconds = REACH_SECONDS;
  return async (url, type, body, signal, headers = {}) => {
    const address = new URL(url);
    // In the clear on this machine alone: whoever has the address has looked at it.
    const isPlain = address.protocol === "http:";
    // A connection, and a session of TLS, of one call alone: no ticket tells two visits apart.
    const agent = new Agent({
      keepAlive: false,
      maxCachedSessions: 0,
      ...(roots ? { ca: [roots].flat() } : {}),
    });
    const requestOptions = {
      headers: { ...headers, "content-type": type, "content-length": body.length },
      ...{ method: "POST", signal, maxHeaderSize: LARGEST_HEAD_BYTES },
    };
    const outgoing = isPlain
      ? plainly(address, { ...requestOptions, agent: false })
      : request(address, { ...requestOptions, agent });
    let reason: string = UNREACHABLE;
    const timer = later(seconds, () => {
      // A program that was busy for so long first hears of what came meanwhile.
      setImmediate(() => {
        if (reason !== UNREACHABLE) return;
        seconds *= 2;
        outgoing.destroy();
      });
    });
    let hints = 0;
    outgoing.on("information", () => {
      hints += 1;
      if (hints > MOST_EARLY_HINTS) outgoing.destroy();
    });
    outgoing.on("socket", (socket) => {
      // A program that ends waits for no answer, unless it waits for flush() or close().
      socket.unref().once(isPlain ? "connect" : "secureConnect", () => {
        reason = "unavailable";
        clearTimeout(timer);
      });
    });
    try {
      const message = await new Promise<IncomingMessage>((resolve, reject) => {
        outgoing.on("response", resolve).on("error", reject).end(body);
      });
      return {
        status: message.statusCode ?? 0,
        headers: Object.fromEntries(
          Object.entries(message.headers).map(([name, value]) => [name, [value].flat().join(", ")]),
        ),
        body: await bodyOf(message),
      };
    } catch (error) {
      if (error instanceof TryAgain) throw error;
      if (signal.aborted) throw tooLate();
      throw new TryAgain(reason);
    } finally {
      clearTimeout(timer);
      agent.destroy();
    }
  };
}

async function bodyOf(message: IncomingMessage): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of message as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > LARGEST_ANSWER_BYTES) throw new TryAgain("no_shuffler");
    parts.push(part);
  }
  return Buffer.concat(parts);
}
