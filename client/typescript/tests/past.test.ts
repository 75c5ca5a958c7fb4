/** Funnels, rates, activity, retention: events are counted, shared, forgotten, and refused. */
import assert from "node:assert/strict";
import test from "node:test";

import { openBundle } from "../src/catalog/bundle.js";
import { Client, type Options } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import { ValueOutOfDomain } from "../src/errors.js";
import { FakeShuffler } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";
import type { Life } from "./device_life.js";

const DAY = 86_400;
const { past: life } = knownAnswer("wire/asking") as { past: Life };

class Device {
  seconds = life.start + DAY;
  readonly storage = new MemoryStorage();

  async client(options: Options = {}): Promise<Client> {
    const settings = { holdSeconds: null, now: () => this.seconds, public: { os: "macos" } };
    const bundle = await openBundle(new TextEncoder().encode(life.signed), null);
    return Client.over(bundle, this.storage, new FakeShuffler(), { ...settings, ...options });
  }
}

async function reportedEvents(client: Client): Promise<string[]> {
  return (await client.ledger()).payloads.map(({ metric }) => metric).sort();
}

test("two pages count together, and report once when the epoch is over", async () => {
  const device = new Device();
  const clients = [await device.client(), await device.client()];
  for (const client of clients) {
    assert.equal(client.report("checkout", "cart"), "noted");
    assert.equal(client.report("use"), "noted");
    await client.flush();
  }
  device.seconds += DAY;
  for (const client of clients) await client.flush();
  assert.deepEqual(await reportedEvents(await device.client()), ["checkout", "use"]);
});

test("an opt-out forgets what was counted, and nothing is counted after it", async () => {
  const device = new Device();
  const client = await device.client();
  client.report("checkout", "cart");
  await client.flush();
  client.report("checkout", "paid");
  await client.disable();
  assert.equal(client.report("checkout", "cart"), "disabled");
  await client.enable();
  device.seconds += DAY;
  await client.flush();
  assert.deepEqual(await reportedEvents(client), []);
});

test("a value for a metric without one is refused, and none is offered", async () => {
  const client = await new Device().client({ strict: true });
  assert.throws(
    () => client.report("use", "secret"),
    (error: Error) => error instanceof ValueOutOfDomain && /leave it out$/.test(error.message),
  );
  assert.throws(() => client.report("checkout", "card"), /did you mean "cart"/);
});

test("a restart reports what was counted before, and a late one nothing", async () => {
  const device = new Device();
  const firstClient = await device.client();
  firstClient.report("checkout", "cart");
  await firstClient.close();
  device.seconds += DAY;
  const secondClient = await device.client();
  secondClient.report("checkout", "visit");
  await secondClient.close();
  assert.equal((await reportedEvents(await device.client())).length, 1);
  device.seconds += 3 * DAY;
  const lateClient = await device.client();
  await lateClient.flush();
  assert.equal((await reportedEvents(lateClient)).length, 1);
});

test("local mode counts events; mistakes are thrown without the value", async () => {
  const local = await new Device().client({ local: true });
  assert.equal(local.report("checkout", "cart"), "counted");
  assert.equal(local.report("use"), "counted");
  await local.flush();
  assert.deepEqual((await local.ledger()).ownCounts, { checkout: { cart: 1 }, use: { use: 1 } });
  const strict = await new Device().client({ strict: true });
  for (const [metric, value] of [
    ["checkout", "secret"],
    ["use", "secret"],
  ] as const) {
    assert.throws(
      () => strict.report(metric, value),
      (error: unknown) => error instanceof ValueOutOfDomain && !error.message.includes("secret"),
    );
  }
});
