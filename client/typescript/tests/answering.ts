/** Answers the judge of tests/proofs/vectors: a request a line from standard input, an answer a line. */
import { createInterface } from "node:readline";

import { openBundle } from "../src/catalog/bundle.js";
import { dummiesOf } from "../src/catalog/dummies.js";
import { toText } from "../src/catalog/encoding.js";
import { epochAt, epochStart } from "../src/catalog/epochs.js";
import { MemoryStorage } from "../src/client/memory.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import type { Coded } from "../src/mechanisms/randomizer.js";
import { MECHANISMS } from "../src/mechanisms/registry.js";
import { seal, sealInfo } from "../src/transport/sealing.js";
import { requestOf, resultsOf } from "../src/transport/submission.js";
import { bytesOf, hexOf } from "./known.js";
import { live } from "./life.js";

interface Asked {
  ask: string;
  mechanism: string;
  parameters: Record<string, number> & { sizes?: number[]; beginnings?: string[] };
  key: string;
  values: Coded[] | number;
  each: number;
  devices: number;
  seconds: number;
  length: string;
  reports: number | { stream: string; epoch: number; key_id: number; sealed: string }[];
  response: string;
  signed: string;
  operator: string;
  public: string;
  stream: string;
  epoch: number;
  payload: string;
  secret: string;
  coins: string;
  start: number;
  told: Record<string, string>;
  steps: [step: string, given: unknown][];
}

async function answer(asked: Asked): Promise<unknown> {
  switch (asked.ask) {
    case "payloads": {
      const {
        epsilon = NaN,
        categories = 2,
        sizes = [],
        beginnings = [],
        ...parameters
      } = asked.parameters;
      const mechanism = MECHANISMS.get(asked.mechanism);
      const built = mechanism?.build({
        ...{ epsilon, categories, sizes, beginnings, parameters },
      });
      const coins = new KeyedBits(bytesOf(asked.key));
      const values = typeof asked.values === "number" ? [] : asked.values;
      return built ? values.map((value) => hexOf(built.randomize(value, coins))) : null;
    }
    case "dummies": {
      const values = Array.from({ length: Number(asked.values) }, String);
      const made = dummiesOf({
        ...{ mechanism: "grr", central_epsilon: 1, dummies_each: asked.each, values },
      });
      const coins = new KeyedBits(bytesOf(asked.key));
      return Array.from({ length: asked.devices }, () => made?.(coins).map(hexOf));
    }
    case "life": {
      const steps = asked.steps.map(([step, given]) => ({ step, with: given }));
      const { said, spent } = await live(
        { ...asked, public: asked.told, steps },
        new MemoryStorage(),
      );
      const came = said.map(({ outcome, kept }, at) => {
        return steps[at]?.step === "flush" ? kept : (outcome ?? null);
      });
      return { steps: came, spent };
    }
    case "epoch": {
      const epoch = epochAt(asked.seconds, asked.length);
      return [epoch, epochStart(epoch, asked.length)];
    }
    case "request": {
      const reports = typeof asked.reports === "number" ? [] : asked.reports;
      return hexOf(
        requestOf(
          reports.map(({ key_id: keyId, sealed, ...rest }) => {
            return { ...rest, keyId, sealed: bytesOf(sealed) };
          }),
        ),
      );
    }
    case "results":
      return resultsOf(bytesOf(asked.response), Number(asked.reports));
    case "bundle":
      return openBundle(
        new TextEncoder().encode(asked.signed),
        toText(bytesOf(asked.operator)),
      ).then(
        () => true,
        () => false,
      );
    case "seal": {
      const info = sealInfo(asked.stream, asked.epoch);
      return hexOf(await seal(bytesOf(asked.payload), bytesOf(asked.public), info));
    }
    default:
      return null;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line) as Asked)));
}
