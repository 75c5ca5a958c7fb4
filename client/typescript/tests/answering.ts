/** Answers the judge of tests/proofs/vectors: a request a line from standard input, an answer a line. */
import { createInterface } from "node:readline";

import { metricOf, openBundle, type Bundle } from "../src/catalog/bundle.js";
import { dummiesOf } from "../src/catalog/dummies.js";
import { toText } from "../src/catalog/encoding.js";
import { epochAt, epochStart } from "../src/catalog/epochs.js";
import { openNotice } from "../src/catalog/notice.js";
import { samplingOf } from "../src/catalog/sampling.js";
import { memoOf } from "../src/client/memo.js";
import { MemoryStorage } from "../src/client/memory.js";
import { admitted } from "../src/client/admission.js";
import { type Trust } from "../src/client/trust.js";
import { pick } from "../src/mechanisms/bits.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import type { Bytes } from "../src/mechanisms/packing.js";
import type { Coded } from "../src/mechanisms/randomizer.js";
import { mechanismOf } from "../src/mechanisms/at_hand.js";
import { readAnswer, writePost } from "../src/transport/binary_http.js";
import { issuedIn, tokenInfo, tokenOf, tokenRequest } from "../src/transport/issuing.js";
import { ristretto255_oprf as oprf } from "../src/transport/curve.js";
import { blinded, outputsOf } from "../src/transport/poprf.js";
import { seal, sealInfo, type Kem } from "../src/transport/sealing.js";
import { requestOf, resultsOf, TYPE } from "../src/transport/submission.js";
import { bytesOf, hexOf } from "./known.js";
import { live } from "./life.js";

interface Asked {
  ask: string;
  mechanism: string;
  parameters: Record<string, number> & {
    sizes?: number[];
    beginnings?: string[];
    seed?: string;
  };
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
  kem: Kem;
  bundle: string;
  bundles: string[];
  metric: string;
  epochs: number[];
  nonce: string;
  output: string;
  sealed: string;
  answer: string;
  wanted: number | { stream: string; epoch: number; elements: string[] }[];
  info: string;
  inputs: string[];
  blinds: string[];
  blinded: string[];
  evaluated: string[];
  proof: string;
  authority: string;
  content: string;
  step: number;
}

const TEXT = new TextEncoder();

function openedBundle(signed: string, operator: string): Promise<Bundle> {
  return openBundle(TEXT.encode(signed), toText(bytesOf(operator)));
}

/** Whether a device takes the last of these bundles, after all before. */
async function taken(bundles: readonly string[], operator: string): Promise<boolean> {
  let trust: Trust | null = null;
  try {
    for (const signed of bundles) {
      ({ trust } = admitted(trust, await openedBundle(signed, operator), false));
    }
    return true;
  } catch {
    return false;
  }
}

async function orRefused(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch {
    return "refused";
  }
}

async function answer(asked: Asked): Promise<unknown> {
  switch (asked.ask) {
    case "payloads": {
      const {
        epsilon = NaN,
        categories = 2,
        sizes = [],
        beginnings = [],
        seed,
        ...parameters
      } = asked.parameters;
      const mechanism = await mechanismOf(asked.mechanism);
      const built = mechanism?.build({
        ...{ epsilon, categories, sizes, beginnings, parameters },
        ...(seed === undefined ? {} : { seed }),
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
      const { said, ledger } = await live(
        { ...asked, public: asked.told, steps },
        new MemoryStorage(),
      );
      const came = said.map(({ outcome, kept }, at) => {
        return steps[at]?.step === "flush" ? kept : (outcome ?? null);
      });
      const sums = (kind: "spent" | "central") =>
        Object.fromEntries(ledger.metrics.map((metric) => [metric.name, metric[kind]]));
      return { steps: came, spent: sums("spent"), central: sums("central") };
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
      return openedBundle(asked.signed, asked.operator).then(
        () => true,
        () => false,
      );
    case "later":
      return taken(asked.bundles, asked.operator);
    case "seal": {
      const info = sealInfo(asked.stream, asked.epoch);
      return hexOf(await seal(bytesOf(asked.payload), bytesOf(asked.public), info, asked.kem));
    }
    case "notice":
      return orRefused(async () => {
        const metric = metricOf(await openedBundle(asked.bundle, asked.operator), asked.metric);
        const operator = toText(bytesOf(asked.operator));
        const notice = await openNotice(TEXT.encode(asked.signed), operator);
        return asked.epochs.map((epoch) => samplingOf(metric, epoch, notice));
      });
    case "token": {
      const [nonce, output] = [bytesOf(asked.nonce), bytesOf(asked.output)];
      const info = tokenInfo(asked.stream, asked.epoch);
      return [info, tokenOf(nonce, output, bytesOf(asked.sealed))].map(hexOf);
    }
    case "token_request": {
      const wanted = typeof asked.wanted === "number" ? [] : asked.wanted;
      return hexOf(
        tokenRequest(wanted.map((one) => ({ ...one, elements: one.elements.map(bytesOf) }))),
      );
    }
    case "token_answer":
      return orRefused(() =>
        issuedIn(bytesOf(asked.answer), Number(asked.wanted)).map(
          (one) => one && { evaluated: one.evaluated.map(hexOf), proof: hexOf(one.proof) },
        ),
      );
    case "token_moment": {
      const moment = TEXT.encode(`${asked.length}|${asked.epoch}`);
      return pick(memoOf(asked.secret, "tokens").coins(moment), 1 << 16);
    }
    case "blind":
      return asked.inputs.map((input) => {
        const made = blinded(oprf, bytesOf(input), bytesOf(asked.public), bytesOf(asked.info));
        return [hexOf(made.blind), hexOf(made.element)];
      });
    case "outputs":
      return orRefused(() => {
        const inputs = asked.inputs.map((input, at) => {
          const [blind = "", element = ""] = [asked.blinds[at], asked.blinded[at]];
          return { input: bytesOf(input), blind: bytesOf(blind), element: bytesOf(element) };
        });
        const told = [asked.proof, asked.public, asked.info].map(bytesOf) as [Bytes, Bytes, Bytes];
        return outputsOf(oprf, inputs, asked.evaluated.map(bytesOf), ...told).map(hexOf);
      });
    case "binary_request": {
      const content = bytesOf(asked.content);
      return hexOf(writePost(asked.authority, "/v1/reports", TYPE, content, asked.step));
    }
    case "binary_response": {
      const { body, ...told } = readAnswer(bytesOf(asked.response));
      return { ...told, content: hexOf(body) };
    }
    default:
      return null;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line) as Asked)));
}
