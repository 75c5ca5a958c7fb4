/** Servers that accept and never answer: flush() and close() keep to their time, and lose nothing. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttp, type RequestListener } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { fetchPost, fetchTransport } from "../src/browser/fetching.js";
import { openBundle } from "../src/catalog/bundle.js";
import { Client, type Options } from "../src/client/client.js";
import { newDevice } from "../src/client/device.js";
import { MemoryStorage } from "../src/client/memory.js";
import type { Transport } from "../src/client/transport.js";
import { TryAgain } from "../src/errors.js";
import { httpsPost, httpsTransport } from "../src/node/https.js";
import { FakeShuffler } from "../src/testing.js";
import { TYPE } from "../src/transport/submission.js";
import { knownAnswer } from "./known_answers.js";
import type { Life } from "./device_life.js";

const life = knownAnswer("wire/ledger") as Life;
const { learning } = knownAnswer("wire/asking") as { learning: Life };
const DAY = 86_400;
const PERSON = { hours: 12.5, plan: "paid", age: 17 };
// A request's own limit: whoever waits for that has not kept to less.
const CALL_MS = 10_000;
const servers: Server[] = [];

after(() => {
  for (const server of servers) server.close();
});

async function listening(server: Server): Promise<string> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What accepts and says nothing, not even how it is to be spoken to. */
async function silent(): Promise<Transport> {
  const server = createServer((socket) => socket.unref().on("error", () => undefined));
  return httpsTransport(`https://${await listening(server)}`, null);
}

/** Takes what it is sent, and answers as it is told. */
async function answering(answer: RequestListener): Promise<[Transport, Buffer[]]> {
  const requests: Buffer[] = [];
  const server = createHttp((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      requests.push(Buffer.concat(parts));
      answer(request, response);
    });
  });
  return [fetchTransport(`http://${await listening(server)}`), requests];
}

async function clientOver(transport: Transport, options: Options = {}): Promise<Client> {
  const bundle = await openBundle(new TextEncoder().encode(life.signed), null);
  const settings = { holdSeconds: null, now: () => life.start, ...options };
  return Client.over(bundle, new MemoryStorage(), transport, settings);
}

/** What came of a call; or that a request's own limit came first. */
async function inTime<T>(call: Promise<T>): Promise<T | "too late"> {
  const abort = new AbortController();
  const limit = sleep(CALL_MS, "too late" as const, { signal: abort.signal });
  limit.catch(() => undefined);
  try {
    return await Promise.race([call, limit]);
  } finally {
    abort.abort();
  }
}

test("a server that says nothing is waited for as long as it is told, and no longer", async () => {
  const client = await clientOver(await silent());
  client.report("theme", "dark");
  assert.equal(await inTime(client.flush(0.3)), false);
  assert.equal(await client.waiting(), 1);
  assert.deepEqual(client.dropped, {});
  assert.equal(await inTime(client.close(0.3)), false);
});

test("what was under way as the time was over is sent again, as the same bytes", async () => {
  let hangs = true;
  const [transport, requests] = await answering((_request, response) => {
    response.writeHead(200, { "content-type": TYPE });
    if (hangs) response.flushHeaders();
    else response.end();
  });
  const client = await clientOver(transport);
  client.report("theme", "dark");
  while (!requests.length) assert.equal(await inTime(client.flush(0.5)), false);
  const [firstRequest] = requests;
  hangs = false;
  assert.equal(await client.flush(), true);
  assert.ok(firstRequest?.length && requests.length > 1);
  assert.ok(requests.every((bytes) => bytes.equals(firstRequest)));
  await client.close();
});

test("what somebody else began is not waited for either, and what is reported is kept", async () => {
  const transport = await silent();
  const client = await clientOver(transport, { holdSeconds: 0 });
  client.report("theme", "dark");
  const calls = test.mock.method(transport, "post");
  const deadline = Date.now() + 30_000;
  while (!calls.mock.callCount() && Date.now() < deadline) {
    await sleep(5);
  }
  client.report("language", "de"); // while the first is on its way
  await inTime(client.settled());
  const ledger = await inTime(client.ledger());
  assert.ok(ledger !== "too late");
  assert.deepEqual(
    ledger.payloads.map(({ metric }) => metric),
    ["theme", "language"],
  );
  assert.equal(await inTime(client.flush(0.1)), false);
  assert.equal(await inTime(client.close(0.1)), false);
  calls.mock.restore();
});

test("the state of models is asked for no longer than that, and what was drawn is kept", async () => {
  const bundle = await openBundle(new TextEncoder().encode(learning.signed), null);
  const storage = new MemoryStorage();
  const device = { ...newDevice(), secret: learning.secret, commits: 1 };
  await storage.transaction((rows) => rows.keepDevice(device));
  let day = 1;
  const options = { holdSeconds: null, now: () => learning.start - 100 + day * DAY + 60 };
  const client = await Client.over(bundle, storage, await silent(), options);
  const learn = () =>
    [0, 1, 2, 3, 4, 5].map((index) => client.learn(`logistic${index}`, PERSON, "left"));
  const queuedCount = learn().filter((outcome) => outcome === "queued").length;
  assert.ok(queuedCount > 0);
  await inTime(client.settled());
  day = 3;
  assert.ok(learn().includes("awaits_state"));
  assert.equal(await inTime(client.close(0.2)), false);
  const nextClient = await Client.over(bundle, storage, new FakeShuffler(), options);
  assert.equal(await nextClient.waiting(), queuedCount);
});

test("an endless head of an answer is not read to its end", async () => {
  const hint = `HTTP/1.1 103 Early Hints\r\nlink: <${"a".repeat(1000)}>\r\n\r\n`;
  const header = `x-a: ${"b".repeat(1000)}\r\n`;
  for (const [begins, goesOn] of [
    ["", hint],
    ["HTTP/1.1 200 OK\r\n", header],
    ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", header],
  ] as const) {
    const server = createServer((socket) => {
      const write = () => {
        while (!socket.destroyed && socket.write(goesOn));
      };
      socket.on("error", () => undefined).on("drain", write);
      socket.unref().write(begins);
      write();
    });
    const post = httpsPost(null);
    const signal = AbortSignal.timeout(CALL_MS);
    const call = post(`http://${await listening(server)}/`, TYPE, new Uint8Array(1), signal);
    await assert.rejects(inTime(call), { reason: "unavailable" });
  }
});

test("an answer that is cut between two fields is no answer", async () => {
  const field = Buffer.from("0a020801", "hex");
  for (const [framing, body] of [
    ["Content-Length: 8", field],
    ["Content-Length: 4", Buffer.of()],
    [
      "Transfer-Encoding: chunked",
      Buffer.concat([Buffer.from("4\r\n"), field, Buffer.from("\r\n")]),
    ],
    ["Connection: close", field], // its end is the connection's, however that ended
  ] as const) {
    const server = createServer((socket) => {
      socket
        .on("error", () => undefined)
        .once("data", () => {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Type: ${TYPE}\r\n${framing}\r\n\r\n`);
          socket.end(body);
        });
    });
    const url = `http://${await listening(server)}/`;
    const signal = AbortSignal.timeout(CALL_MS);
    const posts =
      framing === "Connection: close" ? [httpsPost(null)] : [httpsPost(null), fetchPost];
    for (const post of posts) {
      await assert.rejects(post(url, TYPE, Uint8Array.of(1), signal), TryAgain, framing);
    }
  }
});

test("a flush of no time keeps what was reported, and sends nothing", async () => {
  const shuffler = new FakeShuffler();
  const client = await clientOver(shuffler);
  client.report("theme", "dark");
  assert.equal(await client.close(0), false);
  assert.equal(shuffler.requests.length, 0);
});

test("a page's no is kept, and it closes, though an answer's rest never comes", async (context) => {
  // As Node's fetch, which forgets the signal when memory is tidied up between headers and body.
  const never = () => Promise.resolve(new Response(new ReadableStream()));
  const fetched = context.mock.method(globalThis, "fetch", never);
  const client = await clientOver(fetchTransport("http://127.0.0.1:1"));
  client.report("theme", "dark");
  while (!fetched.mock.callCount()) assert.equal(await inTime(client.flush(0.5)), false);
  await inTime(client.disable());
  assert.equal(await client.waiting(), 0);
  assert.equal(await inTime(client.close(0.1)), true);
});
