/**
 * Sends submissions from Node over HTTPS.
 *
 * PRIVACY: a request has a length, a type and its host, and nothing that distinguishes devices,
 * versions or visits. That is why node:https sends it: fetch would add a User-Agent. Redirects are
 * not followed, because a server must not send reports elsewhere.
 */
import { request as plainly, type IncomingMessage } from "node:http";
import { Agent, request } from "node:https";

import { Diagnostics } from "../client/diagnostics.js";
import type { Post, Transport } from "../client/transport.js";
import { BadParameter, tooLate, TryAgain, UNREACHABLE } from "../errors.js";
import { callLater } from "../time_limits.js";
import { isHttpsPlace } from "../transport/places.js";
import { PATH, TYPE } from "../transport/submission.js";

const LARGEST_ANSWER_BYTES = 1 << 20;
const LARGEST_HEAD_BYTES = 16 << 10; // independent of the program's own limit
const MOST_EARLY_HINTS = 8; // a server may send any number of informational answers first
const THIS_MACHINE = /^(localhost|127\.[0-9.]+|\[::1\])$/;
const NO_PROXY = "HTTPS_PROXY is set, but in Node the client uses no proxy: it connects directly";
const REACH_SECONDS = 1.5; // for the connection and the TLS handshake

/**
 * A transport to a shuffler. address: https://HOST:PORT, with a path if the operator's proxy needs
 * one. roots: as in a bundle.
 *
 * @throws BadParameter the address is not an HTTPS address.
 */
export function httpsTransport(address: string, roots: string | null): Transport {
  if (!isHttpsPlace(address)) {
    throw new BadParameter("the shuffler's address is not HTTPS; give shuffler: https://HOST:PORT");
  }
  const url = address.replace(/\/+$/, "") + PATH;
  const post = httpsPost(roots);
  return { post: (body, signal) => post(url, TYPE, body, signal) };
}

/**
 * A POST over HTTPS. roots: certificates of the authorities to accept, as PEM; null for the
 * system's.
 *
 * The first request waits briefly for a connection, so that a missing network is noticed soon. Each
 * failed connection doubles the wait of the next request, for slow networks.
 */
export function httpsPost(roots: string | readonly string[] | null): Post {
  let seconds = REACH_SECONDS;
  const diagnostics = new Diagnostics(undefined);
  return async (url, type, body, signal, headers = {}) => {
    const address = new URL(url);
    const { https_proxy: proxy = process.env["HTTPS_PROXY"] } = process.env;
    if (proxy && !THIS_MACHINE.test(address.hostname)) diagnostics.warnOnce("proxy", NO_PROXY);
    // Unencrypted requests go only to this machine, as the function that built the address has
    // checked.
    const isPlain = address.protocol === "http:";
    // Each call has its own connection and TLS session, because a session ticket would link two
    // visits.
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
    const timer = callLater(seconds, () => {
      // After a busy program's timer fires, events that arrived meanwhile are handled first.
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
      // The socket does not keep a program alive, unless the program waits for flush() or close().
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
      const failure = new TryAgain(reason);
      // Node's code names the failed step, such as ECONNREFUSED or ERR_TLS_CERT_ALTNAME_INVALID.
      const { code } = error as NodeJS.ErrnoException;
      if (code) failure.message += ` (${code})`;
      throw failure;
    } finally {
      clearTimeout(timer);
      agent.destroy();
    }
  };
}

async function bodyOf(message: IncomingMessage): Promise<Uint8Array> {
  const { "content-length": size, "transfer-encoding": coding } = message.headers;
  // Part of an answer may look whole, and without the refusals in its lost part.
  if (size === undefined && coding === undefined) throw new TryAgain("unavailable");
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of message as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > LARGEST_ANSWER_BYTES) throw new TryAgain("no_shuffler");
    parts.push(part);
  }
  return Buffer.concat(parts);
}
