/**
 * Discovery: some of a metric's devices tell a prefix tree any string, the others what is listed.
 *
 * As client/hubbub/catalog/discovery.py; loaded where a bundle has any of it.
 */
import { UnknownMetric, ValueOutOfDomain } from "../errors.js";
import { exact } from "../mechanisms/fraction.js";
import { utf8Bytes } from "../mechanisms/hashing.js";
import { concatenated, packed } from "../mechanisms/packing.js";
import { purpose } from "../mechanisms/permanent.js";
import { atMost } from "../mechanisms/probability.js";
import { prefixTree } from "../mechanisms/tree.js";
import { number, type Table } from "./json.js";
import type { Finder } from "./metric.js";
import type { Randomizer } from "../mechanisms/randomizer.js";
import { readable } from "./values.js";

const EPOCH_BYTES = 8;
const LEAST = 1e-6;
const MOST = 0.9;
// They are streams of their own at other epsilons, or of a value that is listed: none has a tree.
const APART = ["central_epsilon", "tiers", "breakdown", "default"];

/**
 * What a metric's devices are asked that look for strings; null where none does.
 *
 * @throws UnknownMetric in a way that is not known.
 */
export function finderOf(name: string, entry: Table, own: Randomizer): Finder | null {
  if (entry["discover"] === undefined) return null;
  const share = number(entry["discover"]);
  const epsilon = number(entry["epsilon"]);
  const randomizer = prefixTree({ epsilon, categories: 0, sizes: [], parameters: {} });
  // Whose own mechanism answers for life has no answers that are afresh.
  const isForLife = Number.isFinite(own.permanentLoss);
  const misfit = isForLife || APART.some((field) => entry[field] !== undefined);
  if (misfit || !(share >= LEAST && share <= MOST && randomizer.privacyLoss <= epsilon)) {
    throw new UnknownMetric(`metric "${name}" looks for strings in an unknown way; upgrade hubbub`);
  }
  const chance = atMost(exact(share));
  return {
    stream: { name: `${name}/tree`, tier: "", epsilon, randomizer },
    looks(first, memo) {
      // PRIVACY: of the secret and the calendar alone.
      const bytes = packed(BigInt(first), EPOCH_BYTES).reverse();
      return memo.coins(concatenated(purpose("discover"), bytes)).chance(chance);
    },
    spoken(value) {
      try {
        const text = String(value);
        utf8Bytes(text);
        return text;
      } catch (error) {
        throw new ValueOutOfDomain(`metric "${name}": ${readable(error)}`);
      }
    },
  };
}
