/** One value as one sealed report. */
import { halfOf, keyAt, metricOf, type Bundle, type Metric } from "./bundle.js";
import { epochAt, epochStart } from "./epochs.js";
import { NotNow, UnknownMetric, ValueOutOfDomain } from "./errors.js";
import type { BitSource } from "./mechanisms/bits.js";
import { MECHANISMS, type Randomizer } from "./mechanisms/registry.js";
import { seal, sealInfo } from "./sealing.js";
import type { SealedReport } from "./submission.js";

const DATE = "YYYY-MM-DD";

/**
 * A report of one value, randomized and sealed.
 *
 * PRIVACY: nothing here counts. A metric promises a number of reports an epoch and a loss in a
 * lifetime; whoever calls this keeps both, or breaks that promise.
 *
 * moment: in seconds since 1970-01-01 UTC.
 *
 * @throws UnknownMetric the bundle has no such metric, or one that this version cannot report.
 * @throws ValueOutOfDomain the metric does not list the value.
 * @throws NotNow the metric has ended, or its epoch has no key yet.
 */
export async function uncountedReport(
  bundle: Bundle,
  name: string,
  value: string,
  moment: number,
  coins: BitSource,
): Promise<SealedReport> {
  const metric = metricOf(bundle, name);
  const randomizer = randomizerOf(metric);
  const index = metric.values.indexOf(value);
  if (index === -1) throw new ValueOutOfDomain(`metric "${name}" does not list this value`);
  if (new Date(moment * 1000).toISOString().slice(0, DATE.length) > metric.expires) {
    throw new NotNow(`metric "${name}" has ended; ship a bundle that asks again`);
  }
  const epoch = epochAt(moment, metric.epoch);
  const key = keyAt(bundle.keys, epochStart(epoch, metric.epoch));
  const half = key && halfOf(key, metric.kem);
  if (!half) throw new NotNow(`metric "${name}" has no key for this epoch; ship a newer bundle`);
  const payload = randomizer.randomize(index, coins);
  const sealed = await seal(payload, half, sealInfo(name, epoch), metric.kem);
  return { stream: name, epoch, keyId: key.id, sealed };
}

function randomizerOf(metric: Metric): Randomizer {
  const mechanism = MECHANISMS.get(metric.mechanism);
  if (mechanism?.version !== metric.version) {
    const known = [...MECHANISMS.keys()].join(", ");
    throw new UnknownMetric(
      `metric "${metric.name}" is of another mechanism than ${known}; use the Python SDK`,
    );
  }
  return mechanism.build(metric.epsilon, metric.values.length);
}
