/**
 * A submission from Node, over HTTPS.
 *
 * PRIVACY: a request has a length, a type and its host, and nothing that tells devices, versions or
 * visits apart; so it is made by node:https and not by fetch, which adds a User-Agent. A redirect is
 * not followed: whoever answers may not send reports elsewhere.
 */
import { Agent, request } from "node:https";
import type { IncomingMessage } from "node:http";

import { BadParameter, TryAgain } from "../errors.js";
import {
  meaningOf,
  PATH,
  requestOf,
  TYPE,
  type Answer,
  type Result,
  type SealedReport,
} from "../submission.js";

const LARGEST_ANSWER_BYTES = 1 << 20;

/**
 * A shuffler. address: https://HOST:PORT, and a path that a proxy of the operator's may want. roots: as
 * a bundle's. timeoutSeconds: for all of a call.
 */
export interface Shuffler {
  readonly address: string;
  readonly roots: string | null;
  readonly timeoutSeconds: number;
}

/**
 * One result for each report.
 *
 * @throws BadParameter the address is none of HTTPS.
 * @throws TryAgain they were not taken; send the same reports later.
 * @throws GivenUp the shuffler says that it can never take them.
 */
export async function submit(
  reports: readonly SealedReport[],
  shuffler: Shuffler,
): Promise<Result[]> {
  if (!shuffler.address.startsWith("https://")) {
    throw new BadParameter("the shuffler's address is not of HTTPS; write https://HOST:PORT");
  }
  return meaningOf(await asked(requestOf(reports), shuffler), reports.length);
}

async function asked(
  body: Uint8Array,
  { address, roots, timeoutSeconds }: Shuffler,
): Promise<Answer> {
  // A connection, and a session of TLS, of one call alone: no ticket tells two visits apart.
  const agent = new Agent({
    keepAlive: false,
    maxCachedSessions: 0,
    ...(roots ? { ca: roots } : {}),
  });
  const signal = AbortSignal.timeout(1000 * timeoutSeconds);
  const headers = { "content-type": TYPE, "content-length": body.length };
  try {
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      request(
        new URL(address.replace(/\/+$/, "") + PATH),
        { agent, headers, method: "POST", signal },
        resolve,
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
