/**
 * Dummies that devices make: beside its report each sends some of nobody, by coins of its own.
 *
 * As client/hubbub/catalog/crowds/device_dummies.py.
 */
import { pick, type BitSource } from "../mechanisms/bits.js";
import { exact } from "../mechanisms/fraction.js";
import { index } from "../mechanisms/listed.js";
import type { Bytes } from "../mechanisms/packing.js";
import { atMost } from "../mechanisms/probability.js";
import { listed, number, type Table } from "./json.js";

/** What a device sends beside one report. */
export type Dummies = (coins: BitSource) => Bytes[];

const MOST_EACH = 100;

/**
 * By a bundle's entry; null of a metric that asks for none. Crowds of listed values have them alone,
 * and those say one value.
 *
 * @throws TypeError it asks for more than any does, or of no list.
 */
export function dummiesOf(entry: Table): Dummies | null {
  if (entry["dummies_each"] === undefined) return null;
  const each = number(entry["dummies_each"]);
  const values = listed(entry["values"]).length;
  const ofOne = entry["mechanism"] === "grr" && entry["central_epsilon"] !== undefined;
  if (!(ofOne && each >= 0 && each <= MOST_EACH)) throw new TypeError("dummies of no crowd");
  const floor = Math.floor(each);
  const oneMore = atMost(exact(each - floor));
  // PRIVACY: neither how many they are nor what they name depends on the value.
  return (coins) => {
    const length = floor + Number(coins.chance(oneMore));
    return Array.from({ length }, () => index(pick(coins, values), values));
  };
}
