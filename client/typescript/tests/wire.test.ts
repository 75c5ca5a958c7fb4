import assert from "node:assert/strict";
import test from "node:test";

import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { XWing } from "@hpke/hybridkem-x-wing";

import { epochAt, epochStart } from "../src/catalog/epochs.js";
import { BadParameter, GivenUp, TryAgain } from "../src/errors.js";
import { fieldsOf } from "../src/transport/protobuf.js";
import { seal, SEAL_BYTES, sealInfo, type Kem } from "../src/transport/sealing.js";
import { meaningOf, requestOf, resultsOf, TYPE } from "../src/transport/submission.js";
import { bytesOf, hexOf, knownAnswer } from "./known_answers.js";

interface Epochs {
  epochs: { seconds: number; length: string; epoch: number; start: number }[];
}

interface Sealing {
  private: string;
  public: string;
  stream: string;
  epoch: number;
  info: string;
  payload: string;
  sealed: string;
}

interface Submission {
  reports: { stream: string; epoch: number; key_id: number; sealed: string }[];
  request: string;
  answers: { response: string; results: (string | null)[] }[];
}

test("fields are refused as protobuf's own parsers refuse them", () => {
  const malformed = [
    "808080801001", // number 2**29
    "88808080800001", // a tag of six bytes
    "0001", // number 0
    "2a808080808000", // a size of six bytes
    "28", // no value
    "288080808080808080808000", // a value of eleven bytes
  ];
  for (const hex of malformed) {
    assert.throws(() => [...fieldsOf(bytesOf(hex))], RangeError, hex);
  }
  const [longest, largest] = ["888080800001", "f8ffffff0f01"];
  assert.deepEqual([...fieldsOf(bytesOf(longest))], [[1, 1]]);
  assert.deepEqual([...fieldsOf(bytesOf(largest))], [[2 ** 29 - 1, 1]]);
});

test("a moment is in the same epoch", () => {
  const { epochs } = knownAnswer("wire/epochs") as Epochs;
  for (const { seconds, length, epoch, start } of epochs) {
    assert.equal(epochAt(seconds, length), epoch);
    assert.equal(epochStart(epoch, length), start);
  }
  assert.throws(() => epochAt(0, "fortnight"), BadParameter);
});

for (const kem of ["x25519", "x-wing"] as const) {
  test(`a report sealed by ${kem} opens where it is bound`, async () => {
    const file = kem === "x25519" ? "wire/sealing" : "wire/sealing_x_wing";
    const answers = knownAnswer(file) as Sealing;
    const payload = bytesOf(answers.payload);
    const info = sealInfo(answers.stream, answers.epoch);
    assert.equal(hexOf(info), answers.info);
    const sealedAgain = await seal(payload, bytesOf(answers.public), info, kem);
    assert.equal(sealedAgain.length, payload.length + SEAL_BYTES[kem]);
    assert.equal(hexOf(await open(answers, hexOf(sealedAgain), info, kem)), answers.payload);
    assert.equal(hexOf(await open(answers, answers.sealed, info, kem)), answers.payload);
    const elsewhere = sealInfo(answers.stream, answers.epoch + 1);
    await assert.rejects(open(answers, hexOf(sealedAgain), elsewhere, kem));
  });
}

test("nothing is sealed to a key that protects nothing", async () => {
  for (const weak of [new Uint8Array(32), new Uint8Array(31)]) {
    for (const kem of ["x25519", "x-wing"] as const) {
      await assert.rejects(seal(new Uint8Array(1), weak, sealInfo("theme", 0), kem), BadParameter);
    }
  }
});

test("a platform that refuses a pair of keys is asked for another one", async (context) => {
  const refuse = (): Promise<never> => Promise.reject(new DOMException("", "OperationError"));
  const keys = context.mock.method(crypto.subtle, "generateKey");
  for (const index of [0, 1, 3]) keys.mock.mockImplementationOnce(refuse, index);
  const answers = knownAnswer("wire/sealing") as Sealing;
  const info = sealInfo(answers.stream, answers.epoch);
  for (const calls of [3, 5]) {
    const sealed = await seal(bytesOf(answers.payload), bytesOf(answers.public), info);
    assert.equal(keys.mock.callCount(), calls);
    assert.equal(hexOf(await open(answers, hexOf(sealed), info, "x25519")), answers.payload);
  }
  keys.mock.mockImplementation(refuse);
  await assert.rejects(seal(new Uint8Array(1), bytesOf(answers.public), info), BadParameter);
});

test("a submission has the same bytes, and an answer means the same", () => {
  const { reports, request, answers } = knownAnswer("wire/submission") as Submission;
  const sealed = reports.map(({ stream, epoch, key_id: keyId, sealed }) => ({
    ...{ stream, epoch, keyId },
    sealed: bytesOf(sealed),
  }));
  assert.equal(hexOf(requestOf(sealed)), request);
  for (const { response, results } of answers) {
    assert.deepEqual(resultsOf(bytesOf(response), reports.length), results);
  }
});

test("a report is given up at the shuffler's own word alone", () => {
  const marked = { "hubbub-refused": "for-good" };
  for (const status of [400, 413]) {
    assert.throws(() => meaningOf(post(status, marked), 1), GivenUp);
    assert.throws(() => meaningOf(post(status), 1), TryAgain);
  }
  for (const status of [0, 204, 302, 404, 429, 500, 502, 503]) {
    assert.throws(() => meaningOf(post(status, marked), 1), TryAgain);
  }
});

test("who answers 200 without a shuffler's answer has taken nothing", () => {
  assert.deepEqual(meaningOf(post(200, { "content-type": `${TYPE}; a=b` }), 2), [null, null]);
  assert.throws(() => meaningOf(post(200, { "content-type": "text/html" }), 1), TryAgain);
  assert.throws(() => meaningOf(post(200), 1), TryAgain);
  assert.throws(() => meaningOf(post(200, { "content-type": TYPE }, "<html>"), 1), TryAgain);
});

test("a hint says when to come back", () => {
  const after = (status: number, headers: Record<string, string>, body: string): unknown => {
    try {
      return meaningOf(post(status, headers, body), 1);
    } catch (error) {
      return error instanceof TryAgain ? error.afterSeconds : error;
    }
  };
  assert.equal(after(503, { "retry-after": "9" }, '{"retry_after_ms": 1500}'), 1.5);
  assert.equal(after(429, { "retry-after": "9" }, '{"retry_after_ms": -1}'), 9);
  assert.equal(after(429, { "retry-after": "9" }, "null"), 9);
  assert.equal(after(429, { "retry-after": "1e9" }, "<html>"), undefined);
  assert.equal(after(500, { "retry-after": "9" }, "{}"), undefined);
});

function post(status: number, headers: Record<string, string> = {}, body = "") {
  return { status, headers, body: new TextEncoder().encode(body) };
}

async function open(
  answers: Sealing,
  sealed: string,
  info: Uint8Array,
  kem: Kem,
): Promise<Uint8Array> {
  const suite = new CipherSuite({
    kem: kem === "x-wing" ? new XWing() : new DhkemX25519HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes128Gcm(),
  });
  const key = await suite.kem.importKey("raw", bytesOf(answers.private).buffer, false);
  const size = suite.kem.encSize;
  const [enc, text] = [bytesOf(sealed).slice(0, size), bytesOf(sealed).slice(size)];
  return new Uint8Array(await suite.open({ recipientKey: key, enc, info }, text));
}
