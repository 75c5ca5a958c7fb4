/** Tiers: the streams of a metric by epsilon; a person may allow only some of them. */
import type { Metric, Stream } from "./metric.js";

/** The name of a stream's metric, without cell, list version and tier. */
export function metricNameOf(stream: string): string {
  return /^[^@/]*/.exec(stream)?.[0] ?? stream;
}

/**
 * The stream of the largest epsilon within both limits of the person (of the promise, and of the
 * local loss); undefined if all are above.
 */
export function streamWithin(
  metric: Metric,
  maxEpsilon: number,
  maxLocal: number,
): Stream | undefined {
  const [fullStream, ...tiers] = metric.streams;
  const promisedEpsilon = Math.min(
    metric.central?.epsilon ?? fullStream.epsilon,
    fullStream.epsilon,
  );
  if (promisedEpsilon <= maxEpsilon && fullStream.epsilon <= maxLocal) return fullStream;
  return tiers.filter((tier) => tier.epsilon <= Math.min(maxEpsilon, maxLocal)).pop();
}
