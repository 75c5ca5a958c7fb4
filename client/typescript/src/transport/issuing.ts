/** The way to an issuer of tokens: TokenRequest and TokenResponse of services.proto, and one POST. */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

import type { Post } from "../client/transport.js";
import { BadParameter, tooLate, TryAgain } from "../errors.js";
import { within } from "../within.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { bytesField, fieldsOf, numberField } from "./protobuf.js";
import { TYPE, typeOf } from "./submission.js";

const PATH = "/v1/tokens";
const ISSUER = /^https:\/\/|^http:\/\/(127\.0\.0\.1|localhost):/;
const MARK_BYTES = 16;
const TEXT = new TextEncoder();

/** Whose tokens a bundle's reports go with: where the issuer is, and the key that it answers by. */
export interface TokenIssuer {
  readonly issuer: string;
  readonly publicKey: Bytes;
}

/**
 * The key of an account at the issuer; or what takes the bytes of a request there and returns those of
 * the answer, by the app's own server, where its people log in.
 */
export type Account = string | ((request: Bytes) => Promise<Uint8Array> | Uint8Array);

/** Takes a request to the issuer. @throws TryAgain nothing came back. */
export type AskIssuer = (request: Bytes, signal: AbortSignal) => Promise<Uint8Array>;

/** So many tokens of a stream in an epoch, blinded. */
export interface Wanted {
  readonly stream: string;
  readonly epoch: number;
  readonly elements: readonly Bytes[];
}

/** Of one that was wanted; null where nobody gets any. */
export type Issued = { readonly evaluated: readonly Bytes[]; readonly proof: Bytes } | null;

/** What device, issuer and shuffler agree on in the clear: which reports a token is for. */
export function tokenInfo(stream: string, epoch: number): Bytes {
  return TEXT.encode(`hubbub/1 token|${stream}|${epoch}`);
}

/** A token: its nonce, and what only who knows the output can write of this report. */
export function tokenOf(nonce: Bytes, output: Bytes, sealedBytes: Bytes): Bytes {
  return concatenated(nonce, hmac(sha256, output, sealedBytes).slice(0, MARK_BYTES));
}

/** The bytes of a TokenRequest. */
export function tokenRequest(requests: readonly Wanted[]): Bytes {
  return concatenated(
    ...requests.map(({ stream, epoch, elements }) =>
      bytesField(
        1,
        bytesField(1, TEXT.encode(stream)),
        numberField(2, epoch),
        ...elements.map((element) => bytesField(3, element)),
      ),
    ),
  );
}

/**
 * What an issuer answered, one for each that was wanted.
 *
 * @throws TryAgain it is no answer of an issuer.
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
    // as below
  }
  throw new TryAgain("no_issuer");
}

/**
 * How this app asks the bundle's issuer. post: how requests of HTTP leave here.
 *
 * @throws BadParameter there is no account, or the issuer's address is none.
 */
export function askingIssuer(
  { issuer }: TokenIssuer,
  account: Account | undefined,
  post: Post,
): AskIssuer {
  if (!ISSUER.test(issuer)) throw new BadParameter("the issuer's address is none of HTTPS");
  if (typeof account === "function") {
    return (request, signal) => askedByApp(account, request, signal);
  }
  if (typeof account !== "string" || !account) {
    throw new BadParameter(
      "the bundle's reports need tokens: give account: the key of an account at " +
        `${issuer}, or a function that sends requests there`,
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
