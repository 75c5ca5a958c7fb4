import assert from "node:assert/strict";
import { test } from "node:test";

import { ErrorCode, OpenFeature } from "@openfeature/web-sdk";

import { Arms } from "../examples/openfeature.js";
import { openBundle } from "../src/catalog/bundle.js";
import { openNotice } from "../src/catalog/reduction_notice.js";
import { Client } from "../src/client/client.js";
import { newDevice } from "../src/client/device.js";
import { MemoryStorage } from "../src/client/memory.js";
import { FakeShuffler } from "../src/testing.js";
import { knownAnswer } from "./known_answers.js";

const vectors = knownAnswer("wire/experiments") as {
  signed: string;
  notice: string;
  moment: number;
  arms: Record<string, string[]>;
  after: Record<string, string[]>;
};
const bytes = (text: string) => new TextEncoder().encode(text);

async function clientOf(secret: string, notice?: string): Promise<Client> {
  const bundle = await openBundle(bytes(vectors.signed), null);
  const storage = new MemoryStorage();
  const stop = notice ? await openNotice(bytes(notice), bundle.line[0] ?? "") : null;
  const device = { ...newDevice(), secret, commits: 1, notice: stop };
  await storage.transaction((rows) => rows.keepDevice(device));
  const options = {
    holdSeconds: null,
    now: () => vectors.moment,
    public: { os: "linux" },
    strict: true,
  };
  return Client.over(bundle, storage, new FakeShuffler(), options);
}

test("a device has the arm that Python draws, before a notice and after it", async () => {
  for (const [notice, arms] of [
    [undefined, vectors.arms],
    [vectors.notice, vectors.after],
  ] as const) {
    for (const [secret, armNames] of Object.entries(arms)) {
      const client = await clientOf(secret, notice);
      assert.deepEqual([client.arm("new_menu"), client.arm("colours")], armNames);
    }
  }
});

test("a device that does not report has the first arm, and no arm of what is no experiment", async () => {
  const secret = Object.entries(vectors.arms).find(([, [arm]]) => arm === "new")?.[0] ?? "";
  const client = await clientOf(secret);
  await client.disable();
  assert.equal(client.arm("new_menu"), "control");
  await client.enable();
  assert.equal(client.arm("new_menu"), "new");
  assert.throws(() => client.arm("new_men"), {
    name: "UnknownMetric",
    message:
      'no experiment is called "new_men"; the catalog has colours, new_menu; did you mean "new_menu"?',
  });
  const message = "an experiment is named by a text, not by object";
  assert.throws(() => client.arm([1] as never), { name: "UnknownMetric", message });
});

test("the provider of OpenFeature gives flags the value of the arm", async () => {
  const values = { new_menu: { control: false, new: true }, colours: { none: 1 } };
  const flags = OpenFeature.getClient();
  for (const [secret, [arm]] of Object.entries(vectors.arms)) {
    await OpenFeature.setProviderAndWait(new Arms(await clientOf(secret), values));
    const details = flags.getBooleanDetails("new_menu", false);
    assert.deepEqual([details.value, details.variant], [arm === "new", arm]);
    const missingFlag = flags.getNumberDetails("colours", 7);
    assert.deepEqual([missingFlag.value, missingFlag.errorCode], [7, ErrorCode.FLAG_NOT_FOUND]);
    const wrongFlag = flags.getStringDetails("new_menu", "7");
    assert.deepEqual([wrongFlag.value, wrongFlag.errorCode], ["7", ErrorCode.TYPE_MISMATCH]);
    assert.deepEqual(flags.getObjectValue("constructor", { a: 1 }), { a: 1 });
  }
  await OpenFeature.clearProviders();
});
