/** Servers that fail or are not there: how often they are tried, and what ends without them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { text } from "node:stream/consumers";
import { createServer as createTlsServer } from "node:tls";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import test, { after, type TestContext } from "node:test";

import { openBundle } from "../src/catalog/bundle.js";
import { Client, type Options } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import type { Storage } from "../src/client/storage.js";
import type { Transport } from "../src/client/transport.js";
import { soon } from "../src/client/waits.js";
import { TryAgain } from "../src/errors.js";
import { httpsTransport } from "../src/node/https.js";
import { FakeShuffler } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";
import type { Life } from "./device_life.js";

const { signed, start } = knownAnswer("wire/ledger") as Life;
const bundle = await openBundle(new TextEncoder().encode(signed), null);
// More would be drawn once in ten million runs: as tests/unit/test_waits.py has it of Python's.
const [OUTAGE_SECONDS, MOST_TRIES] = [15, 14];
const NODE_ENTRY = new URL("../src/node.js", import.meta.url);
const folder = await mkdtemp(join(tmpdir(), "hubbub-"));
// Accepts, and says nothing: as a network does that drops all.
const silent = createServer((socket) => socket.unref().on("error", () => undefined)).unref();
silent.listen(0, "127.0.0.1");
await once(silent, "listening");
const BLACK_HOLE = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
const NO_NETWORK = {
  "that drops all": BLACK_HOLE,
  "that refuses": "https://127.0.0.1:1",
  "without the name": "https://nowhere.invalid",
};

after(async () => {
  silent.close();
  await rm(folder, { recursive: true });
});

async function clientOver(
  transport: Transport,
  options: Options = {},
  storage: Storage = new MemoryStorage(),
): Promise<Client> {
  return Client.over(bundle, storage, transport, {
    ...{ holdSeconds: null, now: () => start, ...options },
  });
}

/** What comes of work while seconds pass in no time, once it has begun: sealing takes real time. */
async function passing<T>(
  context: TestContext,
  work: () => Promise<T>,
  hasBegun = () => true,
): Promise<T> {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  context.mock.method(performance, "now", () => Date.now());
  const abort = new AbortController();
  const finished = work().finally(() => {
    abort.abort();
  });
  while (!abort.signal.aborted) {
    for (let turns = 0; turns < 20; turns += 1) await turn();
    if (hasBegun()) context.mock.timers.tick(10);
  }
  return finished;
}

for (const [caseName, hint, maxSeconds] of [
  ["fails", undefined, MOST_TRIES],
  ["wants to be tried again at once", 0, MOST_TRIES],
  ["wants to be left alone for four seconds", 4, 4],
] as const) {
  test(`a shuffler that ${caseName} is tried a handful of times by flush() and by close()`, async (context) => {
    for (const end of ["flush", "close"] as const) {
      let tries = 0;
      const client = await clientOver({
        post: () => {
          tries += 1;
          return Promise.reject(new TryAgain("unavailable", hint));
        },
      });
      client.report("theme", "dark");
      const sent = await passing(
        context,
        () => client[end](OUTAGE_SECONDS),
        () => tries > 0,
      );
      context.mock.reset();
      context.mock.timers.reset();
      assert.equal(sent, false);
      assert.ok(tries >= 2 && tries <= maxSeconds, `${tries} tries by ${end}()`);
    }
  });
}

test("what a server asks for is kept, in bounds, as Python keeps it", () => {
  assert.deepEqual([soon(1, 7), soon(3, 0.001), soon(1, 0.001), soon(9, 1e9)], [7, 1, 0.4, 3600]);
});

for (const [caseName, address] of Object.entries(NO_NETWORK)) {
  test(`close() does not wait for a network ${caseName}, whatever its time, and keeps what waits`, async () => {
    const storage = new MemoryStorage();
    const client = await clientOver(httpsTransport(address, null), {}, storage);
    client.report("theme", "dark");
    assert.equal(await client.close(100_000), false);
    assert.equal(await client.close(), false);
    const nextClient = await clientOver(new FakeShuffler(), {}, storage);
    assert.equal(await nextClient.flush(), true);
    assert.deepEqual(nextClient.dropped, {});
  });
}

test("the message of a failed connection contains the code of the failed step", async () => {
  const withoutCertificate = createTlsServer().unref().listen(0, "127.0.0.1");
  await once(withoutCertificate, "listening");
  const { port } = withoutCertificate.address() as AddressInfo;
  const codes = {
    [`https://127.0.0.1:${port}`]: /\((EPROTO|ERR_SSL)/,
    "https://127.0.0.1:1": /ECONN/,
  };
  for (const [address, message] of Object.entries(codes)) {
    const transport = httpsTransport(address, null);
    await assert.rejects(transport.post(new Uint8Array(1), AbortSignal.timeout(9000)), { message });
  }
  withoutCertificate.close();
});

test("a slow network is reached by flush(), which waits longer each time", async (context) => {
  const transport = httpsTransport(BLACK_HOLE, null);
  const began: number[] = [];
  const client = await clientOver({
    post: async (body, signal) => {
      const before = performance.now();
      try {
        return await transport.post(body, signal);
      } finally {
        began.push(performance.now() - before);
      }
    },
  });
  client.report("theme", "dark");
  assert.equal(await passing(context, () => client.flush(30)), false);
  const [firstMoment = 0, secondMoment = 0] = began;
  assert.ok(secondMoment > 1.5 * firstMoment, `${firstMoment} ms, then ${secondMoment} ms`);
});

test("a program ends though what it sends in the background is not answered", async () => {
  await writeFile(join(folder, "app.hubbub"), signed);
  const program = `
    import { open } from ${JSON.stringify(NODE_ENTRY.href)};
    const [bundle, folder, shuffler] = process.argv.slice(1);
    const client = await open({ bundle, folder, shuffler, holdSeconds: 0, now: () => ${start} });
    console.log(client.report("theme", "dark"));
    await client.settled();
    // Until the request has begun.
    for await (const _ of process.stdin);
  `;
  const stateFolder = join(folder, "background");
  const child = spawn(
    process.execPath,
    ["--input-type=module", "-e", program, join(folder, "app.hubbub"), stateFolder, BLACK_HOLE],
    { stdio: "pipe" },
  );
  silent.once("connection", () => child.stdin.end());
  const [output, errorOutput] = await Promise.all([text(child.stdout), text(child.stderr)]);
  // Whoever waits until the request is over says that reports wait.
  assert.deepEqual([output, errorOutput], ["queued\n", ""]);
});

test("a transport that never answers, and knows of no signal, holds up no call", async () => {
  const client = await clientOver({ post: () => new Promise(() => undefined) }, { holdSeconds: 0 });
  client.report("theme", "dark");
  assert.equal(await client.flush(0.2), false);
  await client.disable();
  assert.equal(await client.waiting(), 0);
  await client.enable();
  assert.equal(client.report("language", "de"), "queued");
  assert.equal(await client.close(0.2), false);
});

test("what a killed process was sending goes with the next flush() of another", async (context) => {
  const storage = new MemoryStorage();
  const killed = await clientOver({ post: () => new Promise(() => undefined) }, {}, storage);
  killed.report("theme", "dark");
  await killed.settled();
  assert.equal(await killed.flush(0.1), false);
  const shuffler = new FakeShuffler();
  await passing(context, async () => {
    const began = Date.now();
    const now = () => start + (Date.now() - began) / 1000;
    const nextClient = await clientOver(shuffler, { now }, storage);
    assert.equal(await nextClient.flush(), true);
  });
  assert.equal(shuffler.reports, 1);
});

test("what an app does as a report is given up may fail later, too", async (context) => {
  const warnings = context.mock.method(console, "warn", () => undefined);
  const client = await clientOver(new FakeShuffler(), {
    onDrop: (() => Promise.reject(new Error("the app's own"))) as unknown as () => void,
  });
  client.report("theme", "dark");
  await client.settled();
  await client.disable();
  await turn();
  assert.deepEqual(client.dropped, { disabled: 1 });
  assert.ok(warnings.mock.calls.some(({ arguments: [text] }) => text === "hubbub: onDrop failed"));
});
