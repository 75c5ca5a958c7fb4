/** Records the raw values that an app reports, for tests. A real device never sends a raw value. */
import { openBundle } from "../catalog/bundle.js";
import type { Value } from "../catalog/values.js";
import { Client, type Options } from "../client/client.js";
import { MemoryStorage } from "../client/memory.js";
import type { Outcome } from "../client/outcome.js";
import type { Bytes } from "../mechanisms/packing.js";
import { FakeShuffler } from "./shuffler.js";

/** One call of report() and its outcome. */
export interface Report {
  readonly metric: string;
  readonly value: Value | undefined;
  readonly outcome: Outcome;
}

/** Every call of report(), by every client, in order. */
export interface Captured {
  readonly reports: readonly Report[];
  /** The values of one metric that were queued, or noted for a later report. */
  values(metric: string): (Value | undefined)[];
  /** Ends the capture. */
  stop(): void;
}

/** A strict client without storage or network; flush() sends to a FakeShuffler. */
export async function memoryClient(bundle: Bytes, options: Options = {}): Promise<Client> {
  const bundleContent = await openBundle(bundle, null);
  const complete = { strict: true, holdSeconds: null, ...options };
  return Client.over(bundleContent, new MemoryStorage(), new FakeShuffler(), complete);
}

/** Records all calls of report() until stop(). Give the app a memoryClient. */
export function capture(): Captured {
  const reports: Report[] = [];
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its client below
  const { report } = Client.prototype;
  Client.prototype.report = function recording(this: Client, metric, value) {
    const outcome = report.call(this, metric, value);
    reports.push({ metric, value, outcome });
    return outcome;
  };
  return {
    reports,
    values: (metric) =>
      reports
        .filter((report) => report.metric === metric && /queued|noted/.test(report.outcome))
        .map((report) => report.value),
    stop() {
      Client.prototype.report = report;
    },
  };
}
