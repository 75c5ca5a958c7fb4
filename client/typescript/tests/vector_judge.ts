/** Answers the judge of tests/proofs/vectors: a request a line from standard input, an answer a line. */
import { createInterface } from "node:readline";

import { metricOf, openBundle, type Bundle } from "../src/catalog/bundle.js";
import { dummiesOf } from "../src/catalog/dummies.js";
import { toText } from "../src/catalog/encoding.js";
import { epochAt, epochStart } from "../src/catalog/epochs.js";
import { openNotice } from "../src/catalog/reduction_notice.js";
import { samplingOf } from "../src/catalog/sampling.js";
import { memoOf } from "../src/client/memo.js";
import { MemoryStorage } from "../src/client/memory.js";
import { admitted } from "../src/client/admission.js";
import { type Trust } from "../src/client/trust.js";
import { pick } from "../src/mechanisms/random_bits.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import type { Bytes } from "../src/mechanisms/packing.js";
import type { Coded } from "../src/mechanisms/randomizer.js";
import { mechanismOf } from "../src/mechanisms/preloaded.js";
import { readAnswer, writePost } from "../src/transport/binary_http.js";
import { issuedIn, tokenInfo, tokenOf, tokenRequest } from "../src/transport/issuer.js";
import { ristretto255_oprf as oprf } from "../src/transport/curve.js";
import { blinded, outputsOf } from "../src/transport/poprf.js";
import { seal, sealInfo, type Kem } from "../src/transport/sealing.js";
import { requestOf, resultsOf, TYPE } from "../src/transport/submission.js";
import { bytesOf, hexOf } from "./known_answers.js";
import { live } from "./device_life.js";

interface Question {
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
  publicValues: Record<string, string>;
  steps: [step: string, argument: unknown][];
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

const ENCODER = new TextEncoder();

function openedBundle(signed: string, operator: string): Promise<Bundle> {
  return openBundle(ENCODER.encode(signed), toText(bytesOf(operator)));
}

/** Whether a device takes the last of these bundles, after all before. */
async function areAdmitted(bundles: readonly string[], operator: string): Promise<boolean> {
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

async function answer(question: Question): Promise<unknown> {
  switch (question.ask) {
    case "payloads": {
      const {
        epsilon = NaN,
        categories = 2,
        sizes = [],
        beginnings = [],
        seed,
        ...parameters
      } = question.parameters;
      const mechanism = await mechanismOf(question.mechanism);
      const built = mechanism?.build({
        ...{ epsilon, categories, sizes, beginnings, parameters },
        ...(seed === undefined ? {} : { seed }),
      });
      const coins = new KeyedBits(bytesOf(question.key));
      const values = typeof question.values === "number" ? [] : question.values;
      return built ? values.map((value) => hexOf(built.randomize(value, coins))) : null;
    }
    case "dummies": {
      const values = Array.from({ length: Number(question.values) }, String);
      const dummies = dummiesOf({
        ...{ mechanism: "grr", central_epsilon: 1, dummies_each: question.each, values },
      });
      const coins = new KeyedBits(bytesOf(question.key));
      return Array.from({ length: question.devices }, () => dummies?.(coins).map(hexOf));
    }
    case "life": {
      const steps = question.steps.map(([step, argument]) => ({ step, with: argument }));
      const { results: outcomes, ledger } = await live(
        { ...question, public: question.publicValues, steps },
        new MemoryStorage(),
      );
      const came = outcomes.map(({ outcome, kept }, index) => {
        return steps[index]?.step === "flush" ? kept : (outcome ?? null);
      });
      const sums = (kind: "spent" | "central") =>
        Object.fromEntries(ledger.metrics.map((metric) => [metric.name, metric[kind]]));
      return { steps: came, spent: sums("spent"), central: sums("central") };
    }
    case "epoch": {
      const epoch = epochAt(question.seconds, question.length);
      return [epoch, epochStart(epoch, question.length)];
    }
    case "request": {
      const reports = typeof question.reports === "number" ? [] : question.reports;
      return hexOf(
        requestOf(
          reports.map(({ key_id: keyId, sealed, ...rest }) => {
            return { ...rest, keyId, sealed: bytesOf(sealed) };
          }),
        ),
      );
    }
    case "results":
      return resultsOf(bytesOf(question.response), Number(question.reports));
    case "bundle":
      return openedBundle(question.signed, question.operator).then(
        () => true,
        () => false,
      );
    case "later":
      return areAdmitted(question.bundles, question.operator);
    case "seal": {
      const info = sealInfo(question.stream, question.epoch);
      return hexOf(
        await seal(bytesOf(question.payload), bytesOf(question.public), info, question.kem),
      );
    }
    case "notice":
      return orRefused(async () => {
        const metric = metricOf(
          await openedBundle(question.bundle, question.operator),
          question.metric,
        );
        const operator = toText(bytesOf(question.operator));
        const notice = await openNotice(ENCODER.encode(question.signed), operator);
        return question.epochs.map((epoch) => samplingOf(metric, epoch, notice));
      });
    case "token": {
      const [nonce, output] = [bytesOf(question.nonce), bytesOf(question.output)];
      const info = tokenInfo(question.stream, question.epoch);
      return [info, tokenOf(nonce, output, bytesOf(question.sealed))].map(hexOf);
    }
    case "token_request": {
      const wantedTokens = typeof question.wanted === "number" ? [] : question.wanted;
      return hexOf(
        tokenRequest(
          wantedTokens.map((request) => ({ ...request, elements: request.elements.map(bytesOf) })),
        ),
      );
    }
    case "token_answer":
      return orRefused(() =>
        issuedIn(bytesOf(question.answer), Number(question.wanted)).map(
          (issued) =>
            issued && { evaluated: issued.evaluated.map(hexOf), proof: hexOf(issued.proof) },
        ),
      );
    case "token_moment": {
      const moment = ENCODER.encode(`${question.length}|${question.epoch}`);
      return pick(memoOf(question.secret, "tokens").coins(moment), 1 << 16);
    }
    case "blind":
      return question.inputs.map((input) => {
        const blinding = blinded(
          oprf,
          bytesOf(input),
          bytesOf(question.public),
          bytesOf(question.info),
        );
        return [hexOf(blinding.blind), hexOf(blinding.element)];
      });
    case "outputs":
      return orRefused(() => {
        const inputs = question.inputs.map((input, index) => {
          const [blind = "", element = ""] = [question.blinds[index], question.blinded[index]];
          return { input: bytesOf(input), blind: bytesOf(blind), element: bytesOf(element) };
        });
        const terms = [question.proof, question.public, question.info].map(bytesOf) as [
          Bytes,
          Bytes,
          Bytes,
        ];
        return outputsOf(oprf, inputs, question.evaluated.map(bytesOf), ...terms).map(hexOf);
      });
    case "binary_request": {
      const content = bytesOf(question.content);
      return hexOf(writePost(question.authority, "/v1/reports", TYPE, content, question.step));
    }
    case "binary_response": {
      const { body, ...head } = readAnswer(bytesOf(question.response));
      return { ...head, content: hexOf(body) };
    }
    default:
      return null;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line) as Question)));
}
