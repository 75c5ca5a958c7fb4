/** Tiers: the streams of a metric by their epsilon, of which a person allows some. */
import type { Metric, Stream } from "./metric.js";

/** The name of the metric that a stream is of, whichever cell, list and tier. */
export function metricNameOf(stream: string): string {
  return /^[^@/]*/.exec(stream)?.[0] ?? stream;
}

/**
 * The stream of the largest epsilon that a person allows, as promised and locally; none if all are
 * above it.
 */
export function streamWithin(
  metric: Metric,
  maxEpsilon: number,
  maxLocal: number,
): Stream | undefined {
  const [first, ...tiers] = metric.streams;
  const promisedEpsilon = Math.min(metric.central?.epsilon ?? first.epsilon, first.epsilon);
  if (promisedEpsilon <= maxEpsilon && first.epsilon <= maxLocal) return first;
  return tiers.filter((tier) => tier.epsilon <= Math.min(maxEpsilon, maxLocal)).pop();
}
