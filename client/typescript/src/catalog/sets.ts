/** Sets of listed values, for the mechanism `privset`. As client/hubbub/catalog/values/sets_and_vectors.py. */
import { NotListed, ValueOutOfDomain } from "../errors.js";
import { placeOf } from "./values.js";

const OTHER_VALUE = "other";

/**
 * The mechanism's value for an array or Set of values: a bit for each. other: whether a text that is
 * not listed counts as "other".
 *
 * @throws ValueOutOfDomain it is not such a collection, or a value is not listed.
 */
export function setCode(values: readonly string[], value: unknown, other: boolean): bigint {
  if (!(Array.isArray(value) || value instanceof Set)) {
    throw new ValueOutOfDomain(
      "the value is not an array or Set; pass one, empty if there is nothing",
    );
  }
  let code = 0n;
  for (const member of value as Iterable<unknown>) {
    let place = placeOf(values, member);
    if (place < 0 && other && typeof member === "string") place = placeOf(values, OTHER_VALUE);
    if (place < 0) {
      throw new NotListed(`a member of the set is not one of its ${values.length} values`);
    }
    code |= 1n << BigInt(place);
  }
  return code;
}
