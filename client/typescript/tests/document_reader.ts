/**
 * Reads signed documents, a JSON line [operator, kind, text] each, and answers with what they promise;
 * or a bundle and values of its metrics, and answers with the values' codes.
 */
import { createInterface } from "node:readline";

import { metricOf, openBundle } from "../src/catalog/bundle.js";
import { openNotice } from "../src/catalog/reduction_notice.js";
import { BundleRefused, ValueOutOfDomain } from "../src/errors.js";

async function promisedBy(operator: string, kind: string, signed: string): Promise<unknown> {
  if (kind === "values") return codesIn(operator, signed);
  const bytes = new TextEncoder().encode(signed);
  if (kind === "notice") {
    const { number, until, steps } = await openNotice(bytes, operator);
    return { number, until, steps };
  }
  const { metrics, unknown } = await openBundle(bytes, operator);
  const promises = [...metrics].map(([name, { digests, limits, streams }]) => {
    const { reportsPerEpoch, lifetimeEpsilon, lifetimeCentralEpsilon } = limits;
    const figures = [streams[0].epsilon, reportsPerEpoch, lifetimeEpsilon, lifetimeCentralEpsilon];
    return [name, [...figures, Object.fromEntries(digests)]];
  });
  return { promises: Object.fromEntries(promises) as unknown, unknown: [...unknown.keys()] };
}

/** The code of each value, null if it is refused. {"integer": "7"} is an integer of any size. */
async function codesIn(operator: string, text: string): Promise<unknown> {
  const [signed, values] = JSON.parse(text, (_, value: unknown) => {
    const { integer } = Object(value) as { integer?: string };
    return integer === undefined ? value : BigInt(integer);
  }) as [string, [string, unknown][]];
  const bundle = await openBundle(new TextEncoder().encode(signed), operator);
  return values.map(([name, value]) => {
    try {
      const code = metricOf(bundle, name).code(value);
      return typeof code === "bigint" ? Number(code) : code;
    } catch (error) {
      if (error instanceof ValueOutOfDomain) return null;
      throw error;
    }
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const [operator, kind, text] = JSON.parse(line) as [string, string, string];
  const answer = await promisedBy(operator, kind, text).catch((error: unknown) => {
    // Of a bundle whatever fails is a refusal.
    if (kind !== "notice" && !(error instanceof BundleRefused)) throw error;
    return null;
  });
  console.log(JSON.stringify(answer));
}
