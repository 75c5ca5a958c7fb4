/** Clients over every storage that Node has: in memory, and in files. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import test, { after } from "node:test";

import { openBundle, type Bundle } from "../src/catalog/bundle.js";
import { Client, type Options } from "../src/client/client.js";
import { loadDevice, newDevice, witnessed } from "../src/client/device.js";
import { MemoryStorage } from "../src/client/memory.js";
import type { Storage } from "../src/client/storage.js";
import { StateUnusable, UnknownMetric, ValueOutOfDomain } from "../src/errors.js";
import { FolderStorage } from "../src/node/files.js";
import { capture, FakeShuffler, memoryClient } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";
import { keptIn, live, type Life } from "./device_life.js";

const life = knownAnswer("wire/ledger") as Life;
type LifeCall =
  | "apart"
  | "unlisted"
  | "covered"
  | "discovering"
  | "crowded"
  | "vectors"
  | "past"
  | "past_in_arms"
  | "learning"
  | "in_arms";
const lives = {
  "the known one": life,
  ...(knownAnswer("wire/asking") as Record<LifeCall, Life>),
};
const bundleBytes = new TextEncoder().encode(life.signed);
const DAY = 86_400;
const folders: string[] = [];

after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});

async function folder(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), "hubbub-"));
  folders.push(parent);
  return join(parent, "device");
}

const STORAGES: [string, () => Promise<Storage>][] = [
  ["memory", () => Promise.resolve(new MemoryStorage())],
  ["files", async () => new FolderStorage(await folder())],
];

/** A clock that stands still until it is set. */
class Clock {
  seconds = life.start;
  readonly now = () => this.seconds;
}

async function clientOver(storage: Storage, options: Options = {}, shuffler = new FakeShuffler()) {
  const settings = { holdSeconds: null, now: new Clock().now, ...options };
  return Client.over(await bundle(), storage, shuffler, settings);
}

function bundle(): Promise<Bundle> {
  return openBundle(bundleBytes, null);
}

async function lived(deviceLife: Life, storage: Storage): Promise<void> {
  const { results: steps, ledger } = await live(deviceLife, storage);
  for (const [index, { outcome, payload, stream, kept }] of deviceLife.steps.entries()) {
    const step = steps[index];
    if (outcome) assert.equal(step?.outcome, outcome, String(index));
    if (payload) {
      assert.ok(step?.kept.some(([name, , bytes]) => name === stream && bytes === payload));
    }
    if (kept) assert.deepEqual(step?.kept.map(String).sort(), kept.map(String).sort());
  }
  assert.equal(ledger.on, deviceLife !== life);
  if (deviceLife === life) assert.deepEqual(await keptIn(storage), []);
  const areClose = (first: number | null, second = NaN) => Math.abs((first ?? NaN) - second) < 1e-9;
  for (const { name, spent, central, centralEpsilon } of ledger.metrics) {
    assert.ok(areClose(spent, deviceLife.spent[name]), name);
    assert.ok(centralEpsilon === null || areClose(central, deviceLife.central?.[name]), name);
  }
  const year = deviceLife.crowds_in_year;
  assert.ok(
    year === undefined ? ledger.crowdsInYear === null : areClose(ledger.crowdsInYear, year),
  );
}

for (const [storageName, create] of STORAGES) {
  for (const [lifeName, deviceLife] of Object.entries(lives)) {
    if (typeof deviceLife === "string") continue; // where they are from
    // One life shows what files keep: all lives in files take 5 s.
    if (storageName !== "memory" && deviceLife !== life) continue;
    test(`a device lives as one did: ${lifeName}, ${storageName}`, async () => {
      await lived(deviceLife, await create());
    });
  }

  test(`two clients share one limit, and neither sends a third report: ${storageName}`, async () => {
    const storage = await create();
    const shuffler = new FakeShuffler();
    const firstClient = await clientOver(storage, {}, shuffler);
    const otherClient = await clientOver(storage, {}, shuffler);
    for (const client of [firstClient, otherClient]) {
      assert.equal(client.report("theme", "dark"), "queued");
      assert.equal(client.report("theme", "dark"), "queued");
    }
    assert.deepEqual(await Promise.all([firstClient.flush(), otherClient.flush()]), [true, true]);
    assert.equal(shuffler.reports, 2);
    const droppedCounts = [firstClient, otherClient].map(
      (client) => client.dropped["already_reported"] ?? 0,
    );
    assert.equal(
      droppedCounts.reduce((sum, count) => sum + count),
      2,
    );
    assert.equal(firstClient.report("theme", "dark"), "already_reported");
  });

  test(`what another client is sending is waited for: ${storageName}`, async () => {
    const storage = await create();
    const shuffler = new FakeShuffler();
    const post = shuffler.post.bind(shuffler);
    const posted = new EventTarget();
    const firstMessage = once(posted, "begun");
    shuffler.post = async (body) => {
      const goes = once(posted, "goes");
      posted.dispatchEvent(new Event("begun"));
      await goes;
      return post(body);
    };
    const client = await clientOver(storage, {}, shuffler);
    const otherClient = await clientOver(storage, {}, shuffler);
    client.report("theme", "dark");
    const first = client.flush();
    await firstMessage;
    const second = otherClient.flush();
    // By when it has found nothing to send.
    for (let step = 0; step < 4; step += 1) await otherClient.ledger();
    posted.dispatchEvent(new Event("goes"));
    assert.deepEqual([await first, await second], [true, true]);
    assert.equal(shuffler.reports, 1);
  });

  test(`what waits is sent by who comes next, as the same bytes: ${storageName}`, async () => {
    const storage = await create();
    const shuffler = new FakeShuffler();
    const firstClient = await clientOver(storage, {}, shuffler);
    shuffler.failing = "unavailable";
    firstClient.report("theme", "dark");
    await firstClient.settled();
    assert.equal(await firstClient.flush(0.1), false);
    assert.equal(await firstClient.waiting(), 1);
    shuffler.failing = null;
    const nextClient = await clientOver(storage, {}, shuffler);
    assert.equal(await nextClient.flush(), true);
    assert.equal(shuffler.reports, 1);
    assert.equal((await nextClient.ledger()).payloads[0]?.fate, "sent");
  });

  test(`a no holds for every client and for what waits: ${storageName}`, async () => {
    const storage = await create();
    const shuffler = new FakeShuffler();
    const client = await clientOver(storage, {}, shuffler);
    const otherClient = await clientOver(storage, {}, shuffler);
    client.report("theme", "dark");
    otherClient.report("language", "de");
    await client.settled();
    await otherClient.settled();
    await client.disable();
    assert.equal(otherClient.report("startup", 5), "queued"); // it has not heard of it, but
    await otherClient.flush();
    assert.equal(shuffler.reports, 0);
    assert.equal(otherClient.report("startup", 5), "disabled");
    assert.equal((await clientOver(storage)).report("theme", "dark"), "disabled");
    await client.enable();
    assert.equal(client.report("theme", "dark"), "queued");
    await client.settled();
  });

  test(`an app is told what a no discards, each payload once: ${storageName}`, async () => {
    for (const forget of [false, true]) {
      const drops: string[] = [];
      const onDrop = (metric: string, reason: string) => drops.push(`${metric} ${reason}`);
      const [clock, shuffler] = [new Clock(), new FakeShuffler()];
      const client = await clientOver(await create(), { onDrop, now: clock.now }, shuffler);
      client.report("theme", "dark");
      client.report("startup", 5);
      await client.settled();
      client.report("language", "de"); // and nobody has begun to keep it
      await client.disable({ forget });
      assert.deepEqual(drops.sort(), ["language disabled", "startup disabled", "theme disabled"]);
      assert.deepEqual(client.dropped, { disabled: 3 });
      await client.enable();
      clock.seconds += DAY; // who forgot keeps that the former one was answered
      assert.equal(client.report("startup", 5), "queued");
      const settled = client.settled(); // while it is being sealed
      await client.disable({ forget });
      await settled;
      assert.equal(client.dropped["disabled"], 4);
      assert.equal(await client.close(), true);
      assert.equal(shuffler.reports, 0);
    }
  });

  test(`who forgets reports no second time today, whatever the clock shows: ${storageName}`, async () => {
    for (const shownTime of [NaN, 1e12, -DAY, life.start - 9 * DAY, life.start]) {
      const clock = new Clock();
      const client = await clientOver(await create(), { now: clock.now });
      assert.equal(client.report("theme", "dark"), "queued");
      assert.equal(await client.flush(), true);
      clock.seconds = shownTime;
      await client.disable({ forget: true });
      await client.enable();
      clock.seconds = life.start;
      assert.equal(client.report("theme", "dark"), "already_reported");
      await client.close();
    }
  });

  test(`what a no discards is told once and not sent, though a yes follows: ${storageName}`, async () => {
    for (let time = 0; time < 12; time += 1) {
      const shuffler = new FakeShuffler();
      const client = await clientOver(await create(), {}, shuffler);
      client.report("theme", "dark");
      client.report("language", "de");
      const under = client.flush(1); // at whatever point of it the no comes
      await sleep(time % 6);
      const no = client.disable({ forget: time % 2 === 0 });
      await sleep(time % 4);
      await Promise.all([under, no, client.enable()]);
      await client.flush();
      assert.equal(shuffler.reports + (client.dropped["disabled"] ?? 0), 2);
      await client.close();
    }
  });

  test(`reports that are refused are given up and counted: ${storageName}`, async () => {
    const shuffler = new FakeShuffler();
    const drops: string[] = [];
    const onDrop = (metric: string, reason: string) => drops.push(`${metric} ${reason}`);
    const client = await clientOver(await create(), { onDrop }, shuffler);
    const headers = { "hubbub-refused": "for-good" };
    shuffler.answer = { status: 413, headers, body: new Uint8Array() };
    client.report("theme", "dark");
    assert.equal(await client.flush(), true);
    assert.deepEqual(client.dropped, { rejected_http_413: 1 });
    assert.deepEqual(drops, ["theme rejected_http_413"]);
    const { counts } = await client.ledger();
    assert.equal(counts["rejected_http_413"], 1);
  });

  test(`what is too late is given up: ${storageName}`, async () => {
    const clock = new Clock();
    const client = await clientOver(await create(), { now: clock.now });
    client.report("startup", 5);
    await client.settled();
    clock.seconds += 3 * DAY;
    assert.equal(await client.flush(), true);
    assert.deepEqual(client.dropped, { expired: 1 });
  });
}

test("a strict client throws for mistakes, another one says what they are", async () => {
  const lenient = await clientOver(new MemoryStorage());
  assert.equal(lenient.report("nothing", 1), "unknown_metric");
  assert.equal(lenient.report("theme", 7), "not_a_value");
  const symbol = Symbol("x") as unknown as string;
  assert.equal(lenient.report("theme", symbol), "not_a_value");
  const strict = await clientOver(new MemoryStorage(), { strict: true });
  assert.throws(() => strict.report("nothing", 1), UnknownMetric);
  assert.throws(() => strict.report("theme", 7), ValueOutOfDomain);
  assert.deepEqual(strict.outcomes, { unknown_metric: 1, not_a_value: 1 });
  await lenient.close();
  assert.equal(lenient.report("theme", "dark"), "closed");
});

test("a client with a bundle of development is strict, unless it is told not to be", async () => {
  const httpsBundle = { ...(await bundle()), development: true };
  const clientWith = (options: Options) =>
    Client.over(httpsBundle, new MemoryStorage(), new FakeShuffler(), {
      holdSeconds: null,
      ...options,
    });
  const strict = await clientWith({});
  assert.throws(() => strict.report("theme", 7), ValueOutOfDomain);
  assert.throws(() => strict.report("nothing", 1), UnknownMetric);
  const lenient = await clientWith({ strict: false });
  assert.equal(lenient.report("theme", 7), "not_a_value");
  await strict.close();
  await lenient.close();
});

test("a device whose place to keep is gone reports nothing, and says so", async () => {
  const refusing = new MemoryStorage();
  refusing.transaction = () => Promise.reject(new StateUnusable("no room"));
  const client = await clientOver(refusing);
  assert.equal(client.report("theme", "dark"), "no_state");
  assert.equal(await client.flush(), false);
});

test("a report that is stored nowhere when its client closes is dropped and counted", async () => {
  const storage = new MemoryStorage();
  const client = await clientOver(storage);
  storage.transaction = () => Promise.reject(new StateUnusable("no room"));
  assert.equal(client.report("theme", "dark"), "queued");
  assert.equal(await client.close(), false);
  assert.deepEqual(client.dropped, { unstored: 1 });
});

test("a state that is lost is known to its witness", async () => {
  const path = await folder();
  const client = await clientOver(new FolderStorage(path));
  client.report("theme", "dark");
  client.report("theme", "dark");
  await client.flush();
  await rm(path, { recursive: true });
  const nextClient = await clientOver(new FolderStorage(path));
  assert.equal(nextClient.report("theme", "dark"), "already_reported");
  await nextClient.disable();
  await rm(path, { recursive: true });
  const lastClient = await clientOver(new FolderStorage(path));
  assert.equal(lastClient.report("language", "de"), "disabled");
  assert.equal((await lastClient.ledger()).counts["state_lost"], 1);
});

test("a page that learns nothing writes nothing as it opens", async () => {
  const storage = new MemoryStorage();
  await clientOver(storage);
  const before = await storage.transaction((rows) => rows.device());
  const witness = await storage.readWitness();
  await clientOver(storage);
  assert.equal(await storage.transaction((rows) => rows.device()), before);
  assert.equal(await storage.readWitness(), witness);
});

test("a state that was put back is brought up to its witness as a page opens", async () => {
  const storage = new MemoryStorage();
  const client = await clientOver(storage);
  const before = await storage.transaction((rows) => rows.device());
  for (const value of ["dark", "light"]) client.report("theme", value);
  await client.settled();
  await storage.transaction((rows) => rows.keepDevice(before));
  const nextClient = await clientOver(storage);
  assert.equal(nextClient.report("theme", "dark"), "already_reported");
  const device = loadDevice(await storage.transaction((rows) => rows.device()));
  assert.equal(device.counts["state_lost"], 1);
  assert.equal(witnessed(device), await storage.readWitness());
});

test("what a newer version keeps in a device is kept by a page of this one", async () => {
  const storage = new MemoryStorage();
  const client = await clientOver(storage);
  client.report("theme", "dark");
  await client.settled();
  const device = loadDevice(await storage.transaction((rows) => rows.device()));
  const { accounts, consent, trust } = device;
  const promises = trust?.promises ?? {};
  const newer = { newer: [1] };
  await storage.transaction((rows) =>
    rows.keepDevice({
      ...{ ...device, ...newer },
      accounts: { ...accounts, theme: { ...accounts["theme"], ...newer } },
      consent: { ...consent, ...newer },
      trust: {
        ...{ ...trust, ...newer },
        promises: { ...promises, theme: { ...promises["theme"], ...newer } },
      },
    }),
  );
  client.report("language", "de");
  await client.settled();
  await client.prefer(0.5);
  const laterBundle = await bundle();
  await Client.over(
    { ...laterBundle, serial: laterBundle.serial + 1 },
    storage,
    new FakeShuffler(),
  );
  const after = loadDevice(await storage.transaction((rows) => rows.device()));
  const parts = [after, after.accounts["theme"], after.consent, after.trust];
  for (const part of [...parts, after.trust?.promises["theme"]]) {
    assert.deepEqual((part as unknown as typeof newer).newer, [1]);
  }
  assert.equal(after.trust?.serial, laterBundle.serial + 1);
});

test("a page asks and sends nothing once another operator's bundle was taken in another", async () => {
  const [storage, shufflers] = [new MemoryStorage(), [new FakeShuffler(), new FakeShuffler()]];
  const [former, otherBundle] = [await clientOver(storage, {}, shufflers[0]), await bundle()];
  assert.equal(former.report("theme", "dark"), "queued");
  const settings = { holdSeconds: null, now: new Clock().now, operatorNamed: true };
  const nextClient = await Client.over(
    { ...otherBundle, line: ["another"] },
    ...([storage, shufflers[1] ?? new FakeShuffler(), settings] as const),
  );
  assert.equal(nextClient.report("language", "de"), "queued");
  await nextClient.settled();
  await former.flush();
  assert.equal(former.report("startup", 7), "no_state");
  await former.flush();
  assert.equal(await nextClient.flush(), true);
  assert.deepEqual([former.dropped, nextClient.dropped], [{ disabled: 1 }, {}]);
  assert.deepEqual(
    shufflers.map(({ reports }) => reports),
    [0, 1],
  );
  await former.disable(); // a person's no is heard all the same
  assert.equal((await nextClient.ledger()).on, false);
});

test("many reports are not sealed in the task that says them", async (context) => {
  const client = await clientOver(new MemoryStorage());
  const keys = context.mock.method(crypto.subtle, "generateKey");
  for (let number = 0; number < 6; number += 1) client.report("startup", number);
  for (let step = 0; step < 1000; step += 1) await Promise.resolve();
  assert.equal(keys.mock.callCount(), 0);
  await client.settled();
  assert.ok(keys.mock.callCount() > 0);
});

test("a folder in folders that are not there yet is made with them", async () => {
  const client = await clientOver(new FolderStorage(join(await folder(), "state", "device")));
  assert.equal(client.report("theme", "dark"), "queued");
});

test("a state that is damaged is set aside, and nothing is said twice", async () => {
  const path = await folder();
  const client = await clientOver(new FolderStorage(path));
  client.report("theme", "dark");
  client.report("theme", "dark");
  await client.settled();
  for (const file of await readdir(path)) await writeFile(join(path, file), "{}");
  const nextClient = await clientOver(new FolderStorage(path));
  assert.equal(nextClient.report("theme", "dark"), "already_reported");
  assert.ok((await readdir(path)).some((file) => file.startsWith("damaged.")));
});

test("many steps of many at once are each done once", async () => {
  const path = await folder();
  const storages = Array.from({ length: 8 }, () => new FolderStorage(path));
  const add = (storage: Storage) =>
    storage.transaction(async (rows) => {
      const sum = ((await rows.device()) as { sum: number } | undefined)?.sum ?? 0;
      await rows.keepDevice({ sum: sum + 1 });
    });
  await Promise.all(
    storages.map((storage) => Promise.all([1, 2, 3, 4, 5].map(() => add(storage)))),
  );
  const sum = await storages[0]?.transaction((rows) => rows.device());
  assert.deepEqual(sum, { sum: 40 });
  assert.equal((await readdir(path)).length, 1);
});

test("an app's test sees what it reports", async () => {
  const captured = capture();
  const client = await memoryClient(bundleBytes, { now: new Clock().now });
  client.report("theme", "dark");
  captured.stop();
  client.report("theme", "light");
  assert.deepEqual(captured.values("theme"), ["dark"]);
});

test("what has a default waits for the end of its epoch, also as a page goes away", async () => {
  const coveredLife = lives.covered;
  const clock = new Clock();
  const bodies: Uint8Array[] = [];
  const shuffler = Object.assign(new FakeShuffler(), {
    last: (body: Uint8Array) => void bodies.push(body),
  });
  const coveredBundle = await openBundle(new TextEncoder().encode(coveredLife.signed), null);
  const client = await Client.over(coveredBundle, new MemoryStorage(), shuffler, {
    ...{ holdSeconds: null, now: clock.now },
  });
  assert.equal(client.report("silence", "a"), "queued");
  await client.settled();
  client.leave();
  assert.equal(await client.flush(), true); // of what may be sent nothing is left
  assert.deepEqual([bodies.length, shuffler.reports, await client.waiting()], [0, 0, 3]);
  clock.seconds += DAY;
  client.leave();
  assert.equal(bodies.length, 1);
  assert.equal(await client.flush(), true);
  // As many of every stream: of three tiers one is a report, and the other metrics say theirs.
  assert.equal(shuffler.reports, 5);
});

test("the operator's bundle is refused if strict", async () => {
  const opened = await openBundle(bundleBytes, null);
  const metrics = new Map(opened.metrics);
  for (const [name, metric] of metrics)
    metrics.set(name, { ...metric, entry: { ...metric.entry, keep: "400d" } });
  const clientOf = (bundle: Bundle) =>
    Client.over(bundle, new MemoryStorage(), new FakeShuffler(), { strict: true });
  await clientOf(opened);
  await assert.rejects(clientOf({ ...opened, metrics }), /is the operator's.*; ship app.hubbub/);
});

test("an app that says nothing of what its metrics are told apart by hears of it", async () => {
  const apartLife = lives.apart;
  const apartBundle = await openBundle(new TextEncoder().encode(apartLife.signed), null);
  const options = { holdSeconds: null, strict: true };
  const clientWith = (more: Options) =>
    Client.over(apartBundle, new MemoryStorage(), new FakeShuffler(), { ...options, ...more });
  await assert.rejects(clientWith({}), /os/);
  await clientWith({ public: { os: () => "linux", version: "2.1" } });
});

test("the ledger's sum of a period is that of its days, until the next one", async () => {
  const apartBundle = await openBundle(new TextEncoder().encode(lives.apart.signed), null);
  const clock = new Clock();
  const period = 4 * DAY; // of `seldom`, as its bundle says
  const periodStart = Math.ceil(clock.seconds / period) * period;
  const storage = new MemoryStorage();
  const device = { ...newDevice(), secret: lives.apart.secret, commits: 1 }; // it draws its days
  await storage.transaction((rows) => rows.keepDevice(device));
  const client = await Client.over(apartBundle, storage, new FakeShuffler(), {
    ...{ holdSeconds: null, now: clock.now, public: { os: "linux", version: "2.1" } },
  });
  const seldom = async () => (await client.ledger()).metrics.find(({ name }) => name === "seldom");
  for (const before of [0, 1, 2, 3]) {
    let reportedCount = 0;
    for (let day = 0; day < 4; day += 1) {
      clock.seconds = periodStart + before * period + day * DAY;
      if (client.report("seldom", "a") === "queued") reportedCount += 1;
      assert.ok(await client.flush());
      const view = await seldom();
      assert.equal(view?.reports, reportedCount);
      assert.equal(view.spentInEpoch, reportedCount * view.epsilon, `day ${String(day)}`);
      assert.equal(view.spent, (before + reportedCount) * view.epsilon);
    }
    assert.equal(reportedCount, 1);
  }
});
