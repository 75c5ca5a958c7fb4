/** A device that lives as one did: step by step, by known coins and a clock that stands still. */
import assert from "node:assert/strict";

import { openBundle } from "../src/catalog/bundle.js";
import type { Features, Label, Value } from "../src/catalog/values.js";
import { Client } from "../src/client/client.js";
import { newDevice } from "../src/client/device.js";
import type { Storage } from "../src/client/storage.js";
import type { LedgerView } from "../src/client/ledger_view.js";
import { FakeShuffler, KeyedBits } from "../src/testing.js";
import { bytesOf, hexOf } from "./known_answers.js";

/** One payload that is kept or was sent. */
export type StoredPayload = readonly [stream: string, epoch: number, payload: string];

/** What a device was told, and what came of it, as wire/ledger.json and asking.json have it. */
export interface Life {
  signed: string;
  secret: string;
  coins: string;
  start: number;
  public?: Record<string, string>;
  steps: {
    step: string;
    with: unknown;
    outcome?: string;
    payload?: string;
    stream?: string;
    kept?: StoredPayload[];
  }[];
  spent: Record<string, number>;
  /** To who sees whole epochs, where there is a promise to those; and by all crowds of a year. */
  central?: Record<string, number>;
  crowds_in_year?: number;
}

/**
 * What came of each step: of a report its outcome and all that is kept after it, of a flush what is kept
 * or was sent that was not before the last one; and in the end the ledger.
 */
export interface Lived {
  readonly results: readonly { outcome?: string; kept: StoredPayload[] }[];
  readonly ledger: LedgerView;
}

/** Everything that is kept or was sent. */
export async function keptIn(storage: Storage): Promise<StoredPayload[]> {
  const reports = await storage.transaction(async (rows) => [
    ...(await rows.past()),
    ...(await rows.waiting()),
  ]);
  return reports.map(({ stream, epoch, payload }) => [stream, epoch, hexOf(payload)]);
}

/** Lives it. */
export async function live(
  life: Pick<Life, "signed" | "secret" | "coins" | "start" | "public"> & {
    readonly steps: readonly Pick<Life["steps"][number], "step" | "with">[];
  },
  storage: Storage,
): Promise<Lived> {
  const device = { ...newDevice(), secret: life.secret, commits: 1 };
  await storage.transaction((rows) => rows.keepDevice(device));
  let seconds = life.start;
  const shuffler = new FakeShuffler();
  const client = await Client.over(
    await openBundle(new TextEncoder().encode(life.signed), null),
    storage,
    shuffler,
    {
      ...{ holdSeconds: null, now: () => seconds, public: life.public ?? {} },
      coins: new KeyedBits(bytesOf(life.coins)),
    },
  );
  const results: { outcome?: string; kept: StoredPayload[] }[] = [];
  const before: string[] = [];
  for (const { step, with: argument } of life.steps) {
    const result: { outcome?: string; kept: StoredPayload[] } = { kept: [] };
    results.push(result);
    if (step === "clock") seconds = life.start - 100 + (argument as number);
    if (step === "prefer") {
      const [maxEpsilon, maxLocal] = argument as [number | null, number | null];
      await client.prefer(maxEpsilon, { maxLocal: maxLocal ?? maxEpsilon });
    }
    if (step === "disable") await client.disable({ forget: argument as boolean });
    if (step === "enable") await client.enable();
    if (step === "flush") {
      assert.ok((await client.flush()) || client.outcomes.awaits_state);
      const unmatched = [...before];
      result.kept = (await keptIn(storage)).filter((row) => {
        const index = unmatched.indexOf(String(row));
        if (index >= 0) unmatched.splice(index, 1);
        return index < 0;
      });
      before.push(...result.kept.map(String));
    }
    if (step === "models") shuffler.models = new TextEncoder().encode(argument as string);
    if (step === "report" || step === "learn") {
      const [name, value, label] = argument as [string, Value & Features, Label];
      result.outcome =
        step === "report" ? client.report(name, value) : client.learn(name, value, label);
      if (/queued|noted/.test(result.outcome)) await client.settled();
      result.kept = await keptIn(storage);
    }
  }
  return { results, ledger: await client.ledger() };
}
