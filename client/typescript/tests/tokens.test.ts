/** Tokens: the RFC's and our own known answers, and what a device does of them, over every storage. */
import assert from "node:assert/strict";
import test from "node:test";

import { ristretto255, ristretto255_hasher, ristretto255_oprf } from "@noble/curves/ed25519.js";

import { openBundle, type Bundle } from "../src/catalog/bundle.js";
import { Client } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import { memoOf } from "../src/client/memo.js";
import type { Post } from "../src/client/transport.js";
import { BadParameter, TryAgain } from "../src/errors.js";
import { pick } from "../src/mechanisms/random_bits.js";
import type { Bytes } from "../src/mechanisms/packing.js";
import { FakeShuffler } from "../src/testing.js";
import {
  askingIssuer,
  issuedIn,
  tokenInfo,
  tokenOf,
  tokenRequest,
} from "../src/transport/issuer.js";
import { blinded, outputsOf } from "../src/transport/poprf.js";
import { bytesField, fieldsOf } from "../src/transport/protobuf.js";
import { TYPE } from "../src/transport/submission.js";
import { bytesOf, hexOf, knownAnswer } from "./known_answers.js";

interface KnownTokens {
  info: string;
  nonce: string;
  output: string;
  sealed: string;
  token: string;
  request: string;
  answer: string;
  secret: string;
  "steps of 65536": Record<string, number>;
  rfc: Record<"public" | "info" | "proof", string> &
    Record<"inputs" | "blinds" | "blinded" | "evaluated" | "outputs", string[]>;
}

const answers = knownAnswer("wire/tokens") as KnownTokens;
const { rfc } = answers;
const life = knownAnswer("wire/ledger") as { signed: string; start: number };
const DAY = 86_400;

function bytes(texts: readonly string[]): Bytes[] {
  return texts.map((text) => bytesOf(text));
}

/** The issuer's function, its memory of accounts left out; every request that it was asked. */
class Issuer {
  readonly keys = ristretto255_oprf.poprf(new Uint8Array()).generateKeyPair();
  readonly requests: Bytes[] = [];
  fails = false;
  forged = "";

  readonly ask = (request: Bytes): Promise<Uint8Array> => {
    this.requests.push(request);
    if (this.fails) return Promise.reject(new TryAgain("killed"));
    const issued = wantedIn(request).flatMap(([stream, epoch, elements]) => {
      const suite = ristretto255_oprf.poprf(tokenInfo(stream, epoch));
      const { evaluated, proof } = suite.blindEvaluateBatch(this.keys.secretKey, elements);
      if (stream === this.forged) proof[63] = Number(proof[63]) ^ 1;
      const fields = evaluated.map((element) => bytesField(1, element));
      return [...bytesField(1, ...fields, bytesField(2, proof))];
    });
    return Promise.resolve(Uint8Array.from(issued));
  };

  /** Whether a shuffler with its key takes the token of a report. */
  takes({ stream, epoch, sealed, token }: SentReport): boolean {
    const nonce = token.slice(0, 16);
    const suite = ristretto255_oprf.poprf(tokenInfo(stream, epoch));
    const output = Uint8Array.from(suite.evaluate(this.keys.secretKey, nonce));
    return hexOf(tokenOf(nonce, output, sealed)) === hexOf(token);
  }
}

interface SentReport {
  stream: string;
  epoch: number;
  sealed: Bytes;
  token: Bytes;
}

function fieldsIn(message: Uint8Array): Map<number, (number | Bytes)[]> {
  const fields = new Map<number, (number | Bytes)[]>();
  for (const [field, number] of fieldsOf(message)) {
    const value = typeof number === "number" ? number : Uint8Array.from(number);
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

function wantedIn(request: Uint8Array): [string, number, Bytes[]][] {
  return (fieldsIn(request).get(1) ?? []).map((element) => {
    const elementFields = fieldsIn(element as Bytes);
    const stream = new TextDecoder().decode(elementFields.get(1)?.[0] as Bytes);
    return [stream, Number(elementFields.get(2)?.[0]), (elementFields.get(3) ?? []) as Bytes[]];
  });
}

/** Every report with its token, of submissions. */
function sentTo(shuffler: FakeShuffler): SentReport[] {
  return shuffler.requests.flatMap((body) => {
    const requestFields = fieldsIn(body);
    return (requestFields.get(1) ?? []).map((element, index) => {
      const report = fieldsIn(element as Bytes);
      return {
        stream: new TextDecoder().decode(report.get(1)?.[0] as Bytes),
        epoch: Number(report.get(2)?.[0]),
        sealed: report.get(4)?.[0] as Bytes,
        token: (requestFields.get(2)?.[index] ?? new Uint8Array()) as Bytes,
      };
    });
  });
}

async function bundleOf(issuer: Issuer): Promise<Bundle> {
  const bundle = await openBundle(new TextEncoder().encode(life.signed), null);
  const publicKey = Uint8Array.from(issuer.keys.publicKey);
  // Three small metrics of the bundle: a request for all of them has 8 tokens, not 38.
  const metrics = new Map(
    [...bundle.metrics].filter(([name]) => ["theme", "language", "asked"].includes(name)),
  );
  return { ...bundle, metrics, tokens: { issuer: "https://issuer.example.org", publicKey } };
}

async function device(
  issuer: Issuer,
  storage = new MemoryStorage(),
  shuffler = new FakeShuffler(),
) {
  const clock = { seconds: life.start };
  const client = await Client.over(await bundleOf(issuer), storage, shuffler, {
    ...{ holdSeconds: null, now: () => clock.seconds, ask: issuer.ask },
  });
  return { client, clock, shuffler, storage };
}

/** Flushes what cannot all be sent, however slow the machine is, until something has happened. */
async function flushUntil(client: Client, happened: () => boolean): Promise<void> {
  for (let flushes = 0; flushes < 100 && !happened(); flushes += 1)
    assert.equal(await client.flush(1), false);
}

test("the RFC's inputs have the RFC's outputs, once the proof holds", () => {
  const [blinds, elements] = [bytes(rfc.blinds), bytes(rfc.blinded)];
  const inputs = bytes(rfc.inputs).map((input, index) => {
    return { input, blind: blinds[index] ?? input, element: elements[index] ?? input };
  });
  for (const { input, blind, element } of inputs) {
    const DST = "HashToGroup-OPRFV1-\x02-ristretto255-SHA512";
    const point = ristretto255_hasher.hashToCurve(input, { DST });
    const scalar = ristretto255.Point.Fn.fromBytes(blind);
    assert.equal(hexOf(Uint8Array.from(point.multiply(scalar).toBytes())), hexOf(element));
  }
  const validArguments = [
    bytes(rfc.evaluated),
    bytesOf(rfc.proof),
    bytesOf(rfc.public),
    bytesOf(rfc.info),
  ] as const;
  assert.deepEqual(outputsOf(ristretto255_oprf, inputs, ...validArguments).map(hexOf), rfc.outputs);
  const [evaluated, proof, publicKey, info] = validArguments;
  const altered = Uint8Array.from(proof, (byte, index) => byte ^ Number(index === 63));
  for (const [points, evidence, key, word] of [
    [[...evaluated].reverse(), proof, publicKey, info],
    [evaluated.slice(1), proof, publicKey, info],
    [[new Uint8Array(32), ...evaluated.slice(1)], proof, publicKey, info],
    [evaluated, altered, publicKey, info],
    [evaluated, proof.slice(1), publicKey, info],
    [evaluated, proof, evaluated[0] ?? proof, info],
    [evaluated, proof, new Uint8Array(32), info],
    [evaluated, proof, publicKey, bytesOf("00")],
  ] as const) {
    assert.throws(
      () => outputsOf(ristretto255_oprf, inputs, points, evidence, key, word),
      BadParameter,
    );
  }
  assert.throws(
    () => blinded(ristretto255_oprf, proof, new Uint8Array(32).fill(255), info),
    BadParameter,
  );
});

test("a token, its messages and the moment of asking are what Python's are", () => {
  assert.equal(hexOf(tokenInfo("theme", 20_000)), answers.info);
  const [nonce, output, sealed] = bytes([answers.nonce, answers.output, answers.sealed]);
  assert.ok(nonce && output && sealed);
  assert.equal(hexOf(tokenOf(nonce, output, sealed)), answers.token);
  const element = (byte: number) => new Uint8Array(32).fill(byte);
  const requests = [
    { stream: "theme", epoch: 20_000, elements: [element(7), element(8)] },
    { stream: "日本", epoch: 0, elements: [element(9)] },
  ];
  assert.equal(hexOf(tokenRequest(requests)), answers.request);
  const [issued, none, had] = issuedIn(bytesOf(answers.answer), 3);
  assert.deepEqual(issued?.evaluated.map(hexOf), ["01".repeat(32)]);
  assert.equal(hexOf(issued.proof), "02".repeat(64));
  assert.equal(none, null);
  assert.deepEqual(had?.evaluated, []);
  for (const [answer, count] of [
    [bytesOf(answers.answer), 2],
    [bytesOf("ff"), 1],
    [bytesOf("0801"), 1],
  ] as const) {
    assert.throws(() => issuedIn(answer, count), TryAgain);
  }
  for (const [text, step] of Object.entries(answers["steps of 65536"])) {
    const coins = memoOf(answers.secret, "tokens").coins(new TextEncoder().encode(text));
    assert.equal(pick(coins, 65_536), step);
  }
});

test("every report goes with a token of its own, whatever the device asks is the same", async () => {
  const issuer = new Issuer();
  const shapes = new Set<string>();
  for (const values of [["dark"], ["dark", "light"], ["light"]]) {
    const { client, shuffler } = await device(issuer);
    for (const value of values) assert.equal(client.report("theme", value), "queued");
    assert.equal(client.report("language", "de"), "queued");
    assert.equal(await client.flush(60), true);
    const sentReports = sentTo(shuffler);
    assert.equal(sentReports.length, values.length + 1);
    assert.equal(
      new Set(sentReports.map(({ token }) => hexOf(token).slice(0, 32))).size,
      sentReports.length,
    );
    for (const report of sentReports) {
      assert.ok(issuer.takes(report));
      assert.ok(!issuer.takes({ ...report, epoch: report.epoch + 1 }));
      assert.ok(!issuer.takes({ ...report, sealed: report.token }));
    }
    assert.equal((await client.ledger()).issuer, "https://issuer.example.org");
  }
  for (const request of issuer.requests) {
    const day = wantedIn(request).filter(([stream]) => stream === "theme" || stream === "language");
    if (day.length)
      shapes.add(
        JSON.stringify(wantedIn(request).map(([name, , elements]) => [name, elements.length])),
      );
  }
  assert.equal(shapes.size, 1);
  assert.match([...shapes].join(), /"theme",2.*"theme\/0.5",2/);
});

test("a device killed before the answer asks the same again, and loses no report", async () => {
  const issuer = new Issuer();
  issuer.fails = true;
  const { client, storage, shuffler } = await device(issuer);
  client.report("theme", "dark");
  await flushUntil(client, () => issuer.requests.length > 0);
  assert.equal(shuffler.reports, 0);
  issuer.fails = false;
  const before = issuer.requests.splice(0).map(hexOf);
  const nextDevice = await device(issuer, storage, shuffler);
  assert.equal(await nextDevice.client.flush(60), true);
  // One request, or two where the next day's is due by the device's own hour.
  assert.ok(before.length >= 1);
  const requestTexts = new Set(issuer.requests.map(hexOf));
  assert.ok(before.every((report) => requestTexts.has(report)));
  assert.ok(sentTo(shuffler).every((report) => issuer.takes(report)));
  assert.equal(sentTo(shuffler).length, 1);
});

test("a flush asks a failing issuer again until its timeout", async () => {
  const issuer = new Issuer();
  issuer.fails = true;
  const { client, clock, shuffler } = await device(issuer);
  issuer.requests.push = (request) => {
    clock.seconds += 1; // longer than the first pause
    issuer.fails = !issuer.requests.length;
    return Array.prototype.push.call(issuer.requests, request);
  };
  client.report("theme", "dark");
  assert.equal(await client.flush(60), true);
  assert.ok(issuer.requests.length > 1);
  assert.ok(sentTo(shuffler).every((report) => issuer.takes(report)));
});

test("a report that is sent again has the same token; a spent one is replaced", async () => {
  const issuer = new Issuer();
  const { client, storage, shuffler } = await device(issuer);
  const post = shuffler.post.bind(shuffler);
  const bodies: Uint8Array[] = [];
  shuffler.post = (body) => {
    bodies.push(body);
    // Lost on its way back; then, that its token had gone with another.
    if (bodies.length === 1) return Promise.reject(new TryAgain("unavailable", 60));
    if (bodies.length > 2) return post(body);
    const refusal = bytesField(1, Uint8Array.of(0x10, 8));
    return Promise.resolve({
      status: 200,
      headers: { "content-type": TYPE },
      body: refusal,
    });
  };
  client.report("theme", "dark");
  await flushUntil(client, () => bodies.length > 0);
  const nextDevice = await device(issuer, storage, shuffler);
  assert.equal(await nextDevice.client.flush(60), true);
  assert.deepEqual(nextDevice.client.dropped, {});
  const [lost, spent, third] = bodies.map((body) =>
    (fieldsIn(body).get(2) ?? []).map((token) => hexOf(token as Bytes)),
  );
  assert.equal(lost?.length, 1);
  assert.deepEqual(spent, lost);
  assert.notDeepEqual(third, spent);
  assert.ok(sentTo(shuffler).every((report) => issuer.takes(report)));
});

test("an issuer that answers by another key gets no report to mark", async () => {
  const [issuer, otherIssuer] = [new Issuer(), new Issuer()];
  const shuffler = new FakeShuffler();
  const client = await Client.over(await bundleOf(issuer), new MemoryStorage(), shuffler, {
    ...{ holdSeconds: null, now: () => life.start, ask: otherIssuer.ask },
  });
  client.report("theme", "dark");
  assert.equal(await client.flush(1), false);
  assert.equal(shuffler.reports, 0);
  assert.equal(await client.waiting(), 1);
});

test("another key of the issuer's loses no report that waits, and asks the same", async () => {
  const [former, otherIssuer] = [new Issuer(), new Issuer()];
  const { client, storage, shuffler } = await device(former);
  shuffler.post = () => {
    // With tokens of the former key: none to a shuffler that has the other.
    const refusal = bytesField(1, Uint8Array.of(0x10, 7));
    const headers = { "content-type": TYPE };
    return Promise.resolve({ status: 200, headers, body: refusal });
  };
  client.report("theme", "dark");
  assert.equal(await client.flush(3), false);
  assert.deepEqual([await client.waiting(), client.dropped], [1, {}]);
  const nextDevice = await device(otherIssuer, storage);
  nextDevice.client.report("theme", "light");
  assert.equal(await nextDevice.client.flush(60), true);
  assert.deepEqual(nextDevice.client.dropped, {});
  const sentReports = sentTo(nextDevice.shuffler);
  assert.equal(sentReports.length, 2);
  assert.ok(sentReports.every((report) => otherIssuer.takes(report)));

  // Who asked by the former key, and was answered by the other, asks the same by the other.
  const ownStorage = new MemoryStorage();
  const bundle = await bundleOf(former);
  const settings = { holdSeconds: null, now: () => life.start, ask: otherIssuer.ask };
  const early = await Client.over(bundle, ownStorage, new FakeShuffler(), settings);
  otherIssuer.requests.splice(0);
  early.report("theme", "dark");
  assert.equal(await early.flush(1), false);
  const before = otherIssuer.requests.splice(0).map(hexOf);
  const laterDevice = await device(otherIssuer, ownStorage);
  assert.equal(await laterDevice.client.flush(60), true);
  assert.ok(before.every((request) => otherIssuer.requests.map(hexOf).includes(request)));
});

test("a page of a former bundle asks for nothing that a later one's page has asked", async () => {
  const [former, otherIssuer] = [new Issuer(), new Issuer()];
  const [storage, shuffler] = [new MemoryStorage(), new FakeShuffler()];
  // The issuer has another key since, by which it answers both.
  const settings = { holdSeconds: null, now: () => life.start, ask: otherIssuer.ask };
  const page = async (issuer: Issuer, serial: number) =>
    Client.over({ ...(await bundleOf(issuer)), serial }, storage, shuffler, settings);
  const early = await page(former, 1);
  const laterClient = await page(otherIssuer, 2);
  laterClient.report("language", "de");
  assert.equal(await laterClient.flush(60), true);
  assert.ok(otherIssuer.requests.splice(0).length);
  assert.equal(early.report("theme", "dark"), "queued");
  assert.equal(await early.flush(1), false);
  assert.deepEqual(otherIssuer.requests, []);
  assert.equal(await laterClient.flush(60), true);
  const sentReports = sentTo(shuffler);
  assert.equal(sentReports.length, 2);
  assert.ok(sentReports.every((report) => otherIssuer.takes(report)));
});

test("a wrong proof of one stream keeps the reports of that one alone", async () => {
  const issuer = new Issuer();
  issuer.forged = "language";
  const { client, shuffler } = await device(issuer);
  client.report("language", "de");
  client.report("theme", "dark");
  await flushUntil(client, () => shuffler.reports > 0);
  assert.deepEqual(
    sentTo(shuffler).map(({ stream }) => stream),
    ["theme"],
  );
  assert.equal(await client.waiting(), 1);
});

test("tokens of the next epoch are there before it, and forgetting leaves none", async () => {
  const issuer = new Issuer();
  const { client, clock, storage } = await device(issuer);
  clock.seconds = life.start - (life.start % DAY) + DAY - 1; // the moment has passed, whichever
  assert.equal(await client.flush(60), true);
  assert.ok(issuer.requests.length >= 1);
  const epochs = issuer.requests.flatMap((request) => wantedIn(request).map(([, epoch]) => epoch));
  assert.ok(epochs.includes(Math.floor(life.start / DAY) + 1));
  const wallet = () => storage.transaction(async (rows) => JSON.stringify(await rows.device()));
  assert.match(await wallet(), /"free":\{"[^}]+\}/);
  await client.disable({ forget: true });
  assert.match(await wallet(), /"wallet":null/);
});

test("an app without an account is told, and its own server may ask", async () => {
  const issuer = { issuer: "https://issuer.example.org", publicKey: new Uint8Array(32) };
  const post = () => Promise.reject(new TryAgain("unavailable"));
  assert.throws(() => askingIssuer(issuer, undefined, post), /account/);
  assert.throws(
    () => askingIssuer({ ...issuer, issuer: "http://else" }, "key", post),
    BadParameter,
  );
  const signal = AbortSignal.timeout(1000);
  const answer = await askingIssuer(issuer, (request) => request, post)(new Uint8Array(3), signal);
  assert.equal(answer.length, 3);
  const askWrongly = askingIssuer(issuer, () => "text" as unknown as Uint8Array, post);
  await assert.rejects(askWrongly(new Uint8Array(3), signal), TryAgain);
});

test("an app's function, or an issuer, that never answers is waited for no longer than told", async () => {
  let requests = 0;
  const issuer = new Issuer();
  const bundle = await bundleOf(issuer);
  const never = () => {
    requests += 1;
    return new Promise<Uint8Array>(() => undefined);
  };
  const post: Post = (_url, _type, _body, signal) => {
    requests += 1;
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reject(new TryAgain("deadline_exceeded"));
      });
    });
  };
  for (const account of ["key", never]) {
    requests = 0;
    const tokens = { issuer: "https://issuer.example.org", publicKey: issuer.keys.publicKey };
    const ask = askingIssuer(tokens, account, post);
    const client = await Client.over(bundle, new MemoryStorage(), new FakeShuffler(), {
      ...{ holdSeconds: null, now: () => life.start, ask },
    });
    client.report("theme", "dark");
    while (!requests) assert.equal(await client.flush(1), false);
    assert.equal(await client.close(1), false);
    assert.equal(await client.waiting(), 1);
    const call = new AbortController();
    setTimeout(() => {
      call.abort();
    }, 1);
    await assert.rejects(ask(new Uint8Array(), call.signal), /deadline_exceeded/);
  }
});
