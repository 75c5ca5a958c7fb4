/**
 * Dummies that devices make: with its report each device sends a random number of dummies.
 *
 * As client/hubbub/client/delivery/sealing_into_outbox.py.
 */
import { pick, type BitSource } from "../mechanisms/random_bits.js";
import { exact } from "../mechanisms/fraction.js";
import { index } from "../mechanisms/randomized_response.js";
import type { Bytes } from "../mechanisms/packing.js";
import { atMost } from "../mechanisms/probability.js";
import { listed, number, type Table } from "./json.js";

/** The dummies that a device sends with one report. */
export type Dummies = (coins: BitSource) => Bytes[];

const MOST_EACH = 100;

/**
 * The dummies of a bundle's entry; null if the metric has none. Only crowds of listed values may
 * have dummies, and each dummy names one value.
 *
 * @throws TypeError there are too many dummies, or no listed values.
 */
export function dummiesOf(entry: Table): Dummies | null {
  if (entry["dummies_each"] === undefined) return null;
  const dummiesEach = number(entry["dummies_each"]);
  const values = listed(entry["values"]).length;
  const ofOne = entry["mechanism"] === "grr" && entry["central_epsilon"] !== undefined;
  if (!(ofOne && dummiesEach >= 0 && dummiesEach <= MOST_EACH))
    throw new TypeError("its dummies do not fit its crowd");
  const floor = Math.floor(dummiesEach);
  const oneMore = atMost(exact(dummiesEach - floor));
  // PRIVACY: neither the number of dummies nor their values depend on the reported value.
  return (coins) => {
    const length = floor + Number(coins.chance(oneMore));
    return Array.from({ length }, () => index(pick(coins, values), values));
  };
}
