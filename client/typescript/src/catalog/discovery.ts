/**
 * Discovery: some of a metric's devices report any string to a prefix tree; the others report the
 * listed values.
 *
 * As client/hubbub/catalog/discovery.py; loaded only if a bundle has such a metric.
 */
import { UnknownMetric } from "../errors.js";
import { exact } from "../mechanisms/fraction.js";
import { utf8Bytes } from "../mechanisms/hashing.js";
import { concatenated, packed } from "../mechanisms/packing.js";
import { purpose } from "../mechanisms/permanent.js";
import { atMost } from "../mechanisms/probability.js";
import { prefixTree } from "../mechanisms/tree.js";
import { number, type Table } from "./json.js";
import type { Finder } from "./metric.js";
import type { Randomizer } from "../mechanisms/randomizer.js";
import { withSubject } from "./values.js";

const EPOCH_BYTES = 8;
const MIN_SHARE = 1e-6;
const MAX_SHARE = 0.9;
// These metrics have separate streams, by epsilon or cell, and those have no tree.
const APART = ["central_epsilon", "tiers", "breakdown", "default"];

/**
 * What the metric asks the devices that look for strings; null if none does.
 *
 * @throws UnknownMetric the discovery is of a later version.
 */
export function finderOf(name: string, entry: Table, counting: Randomizer): Finder | null {
  if (entry["discover"] === undefined) return null;
  const share = number(entry["discover"]);
  const epsilon = number(entry["epsilon"]);
  const randomizer = prefixTree({ epsilon, categories: 0, sizes: [], parameters: {} });
  // A mechanism with permanent responses gives no fresh answers.
  const isForLife = Number.isFinite(counting.permanentLoss);
  const misfit = isForLife || APART.some((field) => entry[field] !== undefined);
  if (misfit || !(share >= MIN_SHARE && share <= MAX_SHARE && randomizer.privacyLoss <= epsilon)) {
    throw new UnknownMetric(`metric "${name}" looks for strings in an unknown way; upgrade hubbub`);
  }
  const chance = atMost(exact(share));
  return {
    stream: { name: `${name}/tree`, tier: "", epsilon, randomizer },
    looks(firstEpoch, memo) {
      // PRIVACY: the choice depends only on the secret and the calendar.
      const bytes = packed(BigInt(firstEpoch), EPOCH_BYTES).reverse();
      return memo.coins(concatenated(purpose("discover"), bytes)).chance(chance);
    },
    spoken(value) {
      return withSubject(`metric "${name}"`, () => {
        const text = String(value);
        utf8Bytes(text);
        return text;
      });
    },
  };
}
