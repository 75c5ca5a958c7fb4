/**
 * Submissions through a relay of Oblivious HTTP (RFC 9458): it sees who sends and no content, the
 * shuffler content and no address. As client/hubbub/client/transport/relay_connection.py.
 */
import { extract, expand } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";

import type { Post, Transport } from "../client/transport.js";
import { BadParameter, GivenUp, TryAgain } from "../errors.js";
import { concatenated, type Bytes } from "../mechanisms/packing.js";
import { readAnswer, writePost } from "./binary_http.js";
import { isHttpsPlace } from "./places.js";
import { suiteOf } from "./sealing.js";
import { meaningOf, PATH, TYPE, typeOf } from "./submission.js";

const REQUEST_TYPE = "message/ohttp-req";
const RESPONSE_TYPE = "message/ohttp-res";
// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, by their numbers of RFC 9180.
const [KEM, KDF, AEAD] = [0x0020, 0x0001, 0x0001];
const CONFIG_BYTES = 37;
const PAIR_BYTES = 4;
const [KEY_BYTES, NONCE_BYTES] = [16, 12];
const STEP_BYTES = 1024;
const ENCODER = new TextEncoder();

/** Decrypts the answer to one request. @throws TryAgain these bytes are not such an answer. */
type AnswerOpener = (answer: Uint8Array) => Promise<Bytes>;

/**
 * A transport through a relay. gateway: the shuffler's key configuration, from the bundle.
 * shuffler: its address, which the encapsulated requests name. post: sends one HTTP request.
 *
 * While a page goes away nothing can be encrypted any more, so the next page sends the waiting
 * reports.
 *
 * @throws BadParameter the relay's address is invalid, or the bundle has no gateway key of a
 * supported kind.
 */
export function relayTransport(
  relay: string,
  gateway: Bytes | null,
  shuffler: string,
  post: Post,
): Transport {
  if (!isHttpsPlace(relay)) {
    throw new BadParameter("relay is not an address; write https://HOST:PORT");
  }
  if (!gateway) {
    throw new BadParameter(
      "the bundle has no gateway key, which a relay needs: hubbub keys gateway",
    );
  }
  const [number, publicKey] = configOf(gateway);
  const authority = shuffler.replace(/^.*:\/\//, "").replace(/\/.*$/, "");
  return {
    async post(body, signal) {
      const request = writePost(authority, PATH, TYPE, body, STEP_BYTES);
      const [message, open] = await encapsulated(number, publicKey, request);
      const answer = await post(relay, REQUEST_TYPE, message, signal);
      if (answer.status !== 200) throw relayed(() => meaningOf(answer, 0));
      if (typeOf(answer.headers) !== RESPONSE_TYPE) throw new TryAgain("no_relay");
      return readAnswer(await open(answer.body));
    },
  };
}

/**
 * The encapsulated request for a relay, and a function that decrypts the answer (RFC 9458, section
 * 4).
 */
export async function encapsulated(
  number: number,
  publicKey: Bytes,
  request: Bytes,
): Promise<[Bytes, AnswerOpener]> {
  const suite = await suiteOf("x25519");
  const head = Uint8Array.of(number, KEM >> 8, KEM & 0xff, 0, KDF, 0, AEAD);
  const info = concatenated(ENCODER.encode("message/bhttp request\0"), head);
  const key = await suite.DeserializePublicKey(publicKey);
  const { encapsulatedSecret: enc, ctx } = await suite.SetupSender(key, { info });
  const message = concatenated(head, enc, await ctx.Seal(request));
  return [
    message,
    async (answer) => {
      const nonce = answer.slice(0, KEY_BYTES);
      const secret = await ctx.Export(ENCODER.encode("message/bhttp response"), KEY_BYTES);
      const prk = extract(sha256, secret, concatenated(enc, nonce));
      const [keyBytes, iv] = [
        expand(sha256, prk, ENCODER.encode("key"), KEY_BYTES),
        expand(sha256, prk, ENCODER.encode("nonce"), NONCE_BYTES),
      ];
      try {
        const aes = await crypto.subtle.importKey("raw", keyBytes, "AES-GCM", false, ["decrypt"]);
        const algorithm = { name: "AES-GCM", iv };
        return new Uint8Array(await crypto.subtle.decrypt(algorithm, aes, answer.slice(KEY_BYTES)));
      } catch {
        throw new TryAgain("no_gateway");
      }
    },
  ];
}

/**
 * The number and the public half of a gateway key that supports our suite. @throws BadParameter it
 * does not.
 */
export function configOf(config: Bytes): [number, Bytes] {
  const view = new DataView(config.buffer, config.byteOffset, config.byteLength);
  const sized = config.length >= CONFIG_BYTES && view.getUint16(1) === KEM;
  const size = sized ? view.getUint16(CONFIG_BYTES - 2) : 0;
  let supported = false;
  for (let offset = CONFIG_BYTES; offset + PAIR_BYTES <= config.length; offset += PAIR_BYTES) {
    supported ||= view.getUint16(offset) === KDF && view.getUint16(offset + 2) === AEAD;
  }
  if (!supported || config.length !== CONFIG_BYTES + size || size % PAIR_BYTES) {
    throw new BadParameter("the gateway's key is of an unknown kind; upgrade hubbub");
  }
  return [config[0] ?? 0, config.slice(3, CONFIG_BYTES - 2)];
}

/** PRIVACY: a relay is not the shuffler, so its answer never makes a device give up a report. */
function relayed(meaning: () => unknown): TryAgain {
  try {
    meaning();
  } catch (error) {
    if (error instanceof TryAgain) {
      return new TryAgain(`relay_${error.reason}`, error.afterSeconds);
    }
    if (error instanceof GivenUp) return new TryAgain(`relay_${error.reason}`);
    throw error;
  }
  return new TryAgain("no_relay");
}
