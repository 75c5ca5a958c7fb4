/** An operator's signed notice asks less of all devices: never more, and never by others. */
import assert from "node:assert/strict";
import test from "node:test";

import { metricOf, openBundle } from "../src/catalog/bundle.js";
import { toText } from "../src/catalog/encoding.js";
import { follows, NoticeRefused, openNotice } from "../src/catalog/reduction_notice.js";
import { samplingOf } from "../src/catalog/sampling.js";
import { Client, type Options } from "../src/client/client.js";
import { MemoryStorage } from "../src/client/memory.js";
import { FakeShuffler } from "../src/testing.js";
import { noticeIn, TYPE } from "../src/transport/submission.js";
import { bytesOf, knownAnswer } from "./known_answers.js";

type Samplings = [number, number][];
interface Notices {
  operator: string;
  notice: string;
  number: number;
  until: number;
  sampling: Samplings;
  lowered: string;
  "lowered sampling": Samplings;
  refused: Record<string, string>;
}

const notices = knownAnswer("wire/notice") as Notices;
const operator = toText(bytesOf(notices.operator));
const bundleBytes = new TextEncoder().encode(
  (knownAnswer("wire/ledger") as { signed: string }).signed,
);
const ENCODER = new TextEncoder();
const START = 20_000 * 86_400;

async function clientOver(shuffler: FakeShuffler, options: Options = {}) {
  const settings = { holdSeconds: null, now: () => START + 100, ...options };
  return Client.over(await openBundle(bundleBytes, null), new MemoryStorage(), shuffler, settings);
}

test("a notice says what it said, for every epoch", async () => {
  const { signed: bundle } = knownAnswer("wire/bundle") as { signed: string };
  const theme = metricOf(await openBundle(ENCODER.encode(bundle), operator), "theme");
  const first = await openNotice(ENCODER.encode(notices.notice), operator);
  const loweredNotice = await openNotice(ENCODER.encode(notices.lowered), operator);
  assert.deepEqual([first.number, first.until], [notices.number, notices.until]);
  for (const [notice, samplings] of [
    [first, notices.sampling],
    [loweredNotice, notices["lowered sampling"]],
  ] as const) {
    for (const [epoch, chance] of samplings) {
      assert.equal(samplingOf(theme, epoch, notice), chance, String(epoch));
      assert.equal(samplingOf({ ...theme, sampling: 0.01 }, epoch, notice) <= 0.01, true);
    }
  }
  assert.deepEqual([follows(loweredNotice, first), follows(first, loweredNotice)], [true, false]);
  assert.equal(follows(first, first), false);
  // Of the key that came after, whatever the number.
  const laterNotice = { ...first, line: [operator, "later"] };
  assert.deepEqual(
    [follows(laterNotice, loweredNotice), follows(loweredNotice, laterNotice)],
    [true, false],
  );
});

for (const [reason, noticeText] of Object.entries(notices.refused)) {
  test(`a notice is refused: ${reason}`, async () => {
    await assert.rejects(openNotice(ENCODER.encode(noticeText), operator), NoticeRefused);
  });
}

test("an answer carries a notice, and nothing else does", () => {
  const body = ENCODER.encode(JSON.stringify({ notice: "AAEC" }));
  const noticeAnswer = Uint8Array.of(0x12, 3, 0, 1, 2);
  const type = { "content-type": TYPE };
  const carried = (status: number, headers: Record<string, string>, content: Uint8Array) =>
    toText(noticeIn({ status, headers, body: content }));
  assert.equal(carried(200, type, noticeAnswer), "AAEC");
  assert.equal(carried(503, {}, body), "AAEC");
  assert.equal(carried(429, {}, body), "AAEC");
  assert.equal(carried(200, {}, noticeAnswer), "");
  for (const status of [200, 400, 502]) assert.equal(carried(status, type, body), "");
  for (const no of ["null", "{}", '{"notice": 7}', "<html>", '{"notice": "*"}']) {
    assert.equal(carried(503, {}, ENCODER.encode(no)), "");
  }
});

test("a stop holds at once, and takes along what waits", async () => {
  const shuffler = new FakeShuffler();
  const client = await clientOver(shuffler);
  assert.equal(client.report("theme", "dark"), "queued");
  const notice = toText(ENCODER.encode(notices.notice));
  const body = ENCODER.encode(JSON.stringify({ notice, retry_after_ms: 60_000 }));
  shuffler.answer = { status: 503, headers: {}, body }; // it is turned away, and hears
  assert.equal(await client.flush(), false);
  assert.equal(client.report("theme", "dark"), "stopped");
  assert.equal(client.report("language", "de"), "queued");
  shuffler.answer = null;
  assert.equal(await client.flush(), true);
  assert.deepEqual(client.dropped, { stopped: 1 });
  assert.equal(shuffler.reports, 1);
  const ledger = await client.ledger();
  assert.deepEqual(ledger.notice, { number: notices.number, until: notices.until });
  const theme = ledger.metrics.find(({ name }) => name === "theme");
  assert.deepEqual([theme?.sampling, theme?.lowered], [0, true]);
});

test("a lowered chance holds for the same devices, and a later notice alone lifts a stop", async () => {
  const shuffler = new FakeShuffler();
  const deliver = async (notice: string, client: Client) => {
    shuffler.notice = ENCODER.encode(notice);
    client.report("domain", "x");
    assert.equal(await client.flush(), true);
  };
  const counts: Record<string, number> = {};
  for (let device = 0; device < 64; device += 1) {
    const client = await clientOver(shuffler, { now: () => START + 86_500 });
    await deliver(notices.lowered, client);
    await deliver(notices.notice, client); // an older one, of a shuffler that would have it back
    const outcome = client.report("theme", "dark");
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  // A quarter of 64: beyond these once in 1e7.
  const { queued = 0, not_sampled: unsampled = 0 } = counts;
  assert.equal(queued + unsampled, 64);
  assert.ok(queued >= 1 && queued <= 35, JSON.stringify(counts));
});

test("a notice of nobody's changes nothing, and says so", async () => {
  const shuffler = new FakeShuffler();
  const client = await clientOver(shuffler);
  shuffler.notice = ENCODER.encode(notices.refused["another operator's"]);
  client.report("theme", "dark");
  assert.equal(await client.flush(), true);
  assert.equal(client.report("theme", "dark"), "queued");
  assert.equal((await client.ledger()).notice, null);
});
