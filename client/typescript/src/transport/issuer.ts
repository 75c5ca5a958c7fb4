/**
 * Requests tokens from an issuer: TokenRequest and TokenResponse of services.proto, sent by one
 * POST.
 */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

import type { Post } from "../client/transport.js";
import { BadParameter, tooLate, TryAgain } from "../errors.js";
import { within } from "../time_limits.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { bytesField, fieldsOf, numberField } from "./protobuf.js";
import { TYPE, typeOf } from "./submission.js";

const PATH = "/v1/tokens";
const ISSUER = /^https:\/\/|^http:\/\/(127\.0\.0\.1|localhost):/;
const MARK_BYTES = 16;
const ENCODER = new TextEncoder();

/** The issuer whose tokens a bundle's reports need: its address, and its public key. */
export interface TokenIssuer {
  readonly issuer: string;
  readonly publicKey: Bytes;
}

/**
 * An account at the issuer: its key, or a function of the app that sends the bytes of a request
 * through the app's own server, where people log in, and returns the bytes of the answer.
 */
export type Account = string | ((request: Bytes) => Promise<Uint8Array> | Uint8Array);

/**
 * Sends a request to the issuer and resolves to its answer. @throws TryAgain no answer came back.
 */
export type AskIssuer = (request: Bytes, signal: AbortSignal) => Promise<Uint8Array>;

/** The blinded tokens that a device requests for one stream and epoch. */
export interface TokenRequest {
  readonly stream: string;
  readonly epoch: number;
  readonly elements: readonly Bytes[];
}

/** The issuer's answer to one such request; null if no device gets tokens for it. */
export type Issued = { readonly evaluated: readonly Bytes[]; readonly proof: Bytes } | null;

/**
 * The public input of a token: the stream and epoch whose reports it allows. Device, issuer and
 * shuffler know it.
 */
export function tokenInfo(stream: string, epoch: number): Bytes {
  return ENCODER.encode(`hubbub/1 token|${stream}|${epoch}`);
}

/**
 * A token for one report: its nonce, and a code over the sealed report that only an owner of
 * `output` can compute.
 */
export function tokenOf(nonce: Bytes, output: Bytes, sealedBytes: Bytes): Bytes {
  return concatenated(nonce, hmac(sha256, output, sealedBytes).slice(0, MARK_BYTES));
}

/** The bytes of a TokenRequest. */
export function tokenRequest(requests: readonly TokenRequest[]): Bytes {
  return concatenated(
    ...requests.map(({ stream, epoch, elements }) =>
      bytesField(
        1,
        bytesField(1, ENCODER.encode(stream)),
        numberField(2, epoch),
        ...elements.map((element) => bytesField(3, element)),
      ),
    ),
  );
}

/**
 * The issuer's answers, one for each requested stream and epoch.
 *
 * @throws TryAgain these bytes are not an issuer's answer.
 */
export function issuedIn(answer: Uint8Array, count: number): Issued[] {
  try {
    const results = [...fieldsOf(answer)].map(([field, content]) => {
      if (field !== 1 || typeof content === "number") throw new RangeError("another message");
      const evaluationFields = [...fieldsOf(content)];
      const bytes = (fieldNumber: number) =>
        evaluationFields.flatMap(([name, element]) =>
          name === fieldNumber && typeof element === "object" ? [Uint8Array.from(element)] : [],
        );
      if (evaluationFields.some(([name, element]) => name === 3 && element)) return null;
      return { evaluated: bytes(1), proof: bytes(2)[0] ?? new Uint8Array() };
    });
    if (results.length === count) return results;
  } catch {
    // the error below follows
  }
  throw new TryAgain("no_issuer");
}

/**
 * A function that sends requests to the bundle's issuer. post: sends one HTTP request.
 *
 * @throws BadParameter there is no account, or the issuer's address is invalid.
 */
export function askingIssuer(
  { issuer }: TokenIssuer,
  account: Account | undefined,
  post: Post,
): AskIssuer {
  if (!ISSUER.test(issuer)) throw new BadParameter("the issuer's address must begin with https://");
  if (typeof account === "function") {
    return (request, signal) => askedByApp(account, request, signal);
  }
  if (typeof account !== "string" || !account) {
    throw new BadParameter(
      "the bundle's reports need tokens: give account: KEY, an account's key at " +
        `${issuer}, or a function that requests them`,
    );
  }
  const url = issuer.replace(/\/+$/, "") + PATH;
  return async (request, signal) => {
    const { status, headers, body } = await post(url, TYPE, request, signal, {
      authorization: `Bearer ${account}`,
    });
    if (status !== 200 || typeOf(headers) !== TYPE) throw new TryAgain(`issuer_http_${status}`);
    return body;
  };
}

async function askedByApp(
  ask: Exclude<Account, string>,
  request: Bytes,
  signal: AbortSignal,
): Promise<Uint8Array> {
  let answer: unknown;
  try {
    answer = await within(signal, Promise.resolve(ask(request)));
  } catch {
    throw signal.aborted ? tooLate() : new TryAgain("app_failed");
  }
  if (answer instanceof Uint8Array) return answer;
  throw new TryAgain("app_no_bytes");
}
