/** Reads signed documents, a JSON line [operator, kind, text] each, and answers with what they promise. */
import { createInterface } from "node:readline";

import { openBundle } from "../src/catalog/bundle.js";
import { openNotice } from "../src/catalog/notice.js";
import { BundleRefused } from "../src/errors.js";

async function promisedBy(operator: string, kind: string, signed: string): Promise<unknown> {
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

for await (const line of createInterface({ input: process.stdin })) {
  const [operator, kind, text] = JSON.parse(line) as [string, string, string];
  const answer = await promisedBy(operator, kind, text).catch((error: unknown) => {
    // Of a bundle whatever fails is a refusal.
    if (kind !== "notice" && !(error instanceof BundleRefused)) throw error;
    return null;
  });
  console.log(JSON.stringify(answer));
}
