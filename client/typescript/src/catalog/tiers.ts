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
export function streamWithin(metric: Metric, most: number, local: number): Stream | undefined {
  const [own, ...tiers] = metric.streams;
  const promised = Math.min(metric.central?.epsilon ?? own.epsilon, own.epsilon);
  if (promised <= most && own.epsilon <= local) return own;
  return tiers.filter((tier) => tier.epsilon <= Math.min(most, local)).pop();
}
