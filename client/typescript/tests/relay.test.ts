/** Through a relay: known answers, and a gateway of other hands (bhttp-js, \@hpke/core). */
import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import test from "node:test";

import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { BHttpDecoder, BHttpEncoder } from "bhttp-js";

import type { Post } from "../src/client/transport.js";
import { BadParameter, TryAgain } from "../src/errors.js";
import { readAnswer, writePost } from "../src/transport/binary_http.js";
import { configOf, relayTransport } from "../src/transport/relay.js";
import { bytesOf, hexOf, knownAnswer } from "./known_answers.js";

interface Oblivious {
  private: string;
  config: string;
  public: string;
  authority: string;
  content: string;
  step: number;
  request: string;
  responses: {
    response: string;
    status: number;
    headers: Record<string, string>;
    content: string;
  }[];
  rfc: { config: string; public: string };
}

const answers = knownAnswer("wire/oblivious") as Oblivious;
const TYPE = "application/protobuf";
const NEVER = new AbortController().signal;
const ENCODER = new TextEncoder();

test("a request has the same bytes, and an answer says the same", () => {
  const content = bytesOf(answers.content);
  const request = writePost(answers.authority, "/v1/reports", TYPE, content, answers.step);
  assert.equal(hexOf(request), answers.request);
  for (const { response, status, headers, content: text } of answers.responses) {
    const answer = readAnswer(bytesOf(response));
    assert.deepEqual(answer, { status, headers, body: answer.body });
    assert.equal(hexOf(answer.body), text);
  }
  assert.equal(readAnswer(bytesOf("01406600" + "40c8")).status, 200);
  const longAnswer = readAnswer(bytesOf("0140c800" + "80004e20" + "07".repeat(20_000)));
  assert.equal(hexOf(longAnswer.body), "07".repeat(20_000));
  for (const wrongAnswer of ["", "00", "01", "0140", "0140c805", "0140c8000541", answers.request]) {
    assert.throws(() => readAnswer(bytesOf(wrongAnswer)), TryAgain, wrongAnswer);
  }
});

test("a gateway's key is read, and none that is not known", () => {
  for (const [config, number, publicKey] of [
    [answers.config, undefined, answers.public],
    [answers.rfc.config, 1, answers.rfc.public],
  ] as const) {
    const [keyNumber, key] = configOf(bytesOf(config));
    assert.equal(hexOf(key), publicKey);
    if (number !== undefined) assert.equal(keyNumber, number);
  }
  const shortKeyConfig = answers.config.slice(0, 70) + "0006" + answers.config.slice(74) + "0001";
  for (const wrongConfig of [
    "",
    answers.config.slice(2),
    answers.config + "00",
    "01".repeat(41),
    shortKeyConfig,
  ]) {
    assert.throws(() => configOf(bytesOf(wrongConfig)), BadParameter);
  }
  const post: Post = () => Promise.reject(new TryAgain("never"));
  assert.throws(() => relayTransport("http://a", bytesOf(answers.config), "b", post), BadParameter);
  assert.throws(() => relayTransport("https://a", null, "b", post), /hubbub keys gateway/);
});

/** A relay and its gateway, by libraries that this package does not use: it answers with these. */
function gatewayOf(
  answer: (request: Request) => Response,
  alter: (sealed: Uint8Array) => Uint8Array = (sealed) => sealed,
): Post {
  return async (url, type, body) => {
    assert.deepEqual([url, type], ["https://relay.example.net/", "message/ohttp-req"]);
    const [head, enc, sealed] = [body.slice(0, 7), body.slice(7, 39), body.slice(39)];
    const suite = new CipherSuite({
      kem: new DhkemX25519HkdfSha256(),
      kdf: new HkdfSha256(),
      aead: new Aes128Gcm(),
    });
    const recipientKey = await suite.kem.importKey("raw", bytesOf(answers.private).buffer, false);
    const info = Buffer.concat([ENCODER.encode("message/bhttp request\0"), head]);
    const context = await suite.createRecipientContext({ recipientKey, enc, info });
    const request = new BHttpDecoder().decodeRequest(await context.open(sealed));
    const response = await new BHttpEncoder().encodeResponse(answer(request));
    const secret = Buffer.from(await context.export(ENCODER.encode("message/bhttp response"), 16));
    const nonce = randomBytes(16);
    const mac = (key: Uint8Array, ...parts: Uint8Array[]) =>
      createHmac("sha256", key).update(Buffer.concat(parts)).digest();
    const prk = mac(Buffer.concat([enc, nonce]), secret);
    const counter = Uint8Array.of(1);
    const raw = mac(prk, ENCODER.encode("key"), counter).subarray(0, 16);
    const iv = mac(prk, ENCODER.encode("nonce"), counter).subarray(0, 12);
    const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt"]);
    const ct = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, new Uint8Array(response));
    const answerBody = alter(Buffer.concat([nonce, new Uint8Array(ct)]));
    return { status: 200, headers: { "content-type": "message/ohttp-res" }, body: answerBody };
  };
}

function through(post: Post) {
  const transport = relayTransport(
    "https://relay.example.net/",
    bytesOf(answers.config),
    "https://reports.example.org:443",
    post,
  );
  return transport.post(bytesOf(answers.content), NEVER);
}

test("a gateway of other hands opens what is sent, and its answer is read", async () => {
  const requests: [string, string, string | null][] = [];
  const answer = await through(
    gatewayOf((request) => {
      requests.push([request.method, request.url, request.headers.get("content-type")]);
      return new Response(Uint8Array.of(10, 0), { status: 200, headers: { "content-type": TYPE } });
    }),
  );
  assert.deepEqual(
    requests,
    [["POST", "https://reports.example.org:443/v1/reports", TYPE]].map(([method, url, type]) => [
      method,
      new URL(url ?? "").href,
      type,
    ]),
  );
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-type"], TYPE);
  assert.equal(hexOf(answer.body), "0a00");
});

test("whatever a relay says ends no report", async () => {
  const postWith = (status: number, headers: Record<string, string>, body = ""): Post => {
    return () => Promise.resolve({ status, headers, body: ENCODER.encode(body) });
  };
  const forGood = { "hubbub-refused": "for-good" };
  const reason = async (post: Post) =>
    through(post).then(
      () => "taken",
      (error: unknown) => (error instanceof TryAgain ? error.reason : String(error)),
    );
  assert.equal(await reason(postWith(400, forGood)), "relay_invalid_argument");
  assert.equal(await reason(postWith(422, {})), "relay_http_422");
  assert.equal(await reason(postWith(429, { "retry-after": "3" })), "relay_resource_exhausted");
  assert.equal(await reason(postWith(200, { "content-type": "text/html" }, "<html>")), "no_relay");
  const headers = { "content-type": "message/ohttp-res" };
  assert.equal(await reason(postWith(200, headers, "no answer that was sealed")), "no_gateway");
  const altered = gatewayOf(
    () => new Response(null, { status: 200 }),
    (answerBody) =>
      answerBody.map((byte, index) => (index === answerBody.length - 1 ? byte ^ 1 : byte)),
  );
  assert.equal(await reason(altered), "no_gateway");
});
