/** Vectors, as `vector.codes` takes them: as client/hubbub/catalog/values/vectors.py. */
import { ValueOutOfDomain } from "../errors.js";
import { length } from "../mechanisms/alike.js";
import { apart } from "../mechanisms/vector_codes.js";

/**
 * The mechanism's value for an array of numbers: what is longer than `most` is made shorter.
 *
 * @throws ValueOutOfDomain another number of them, or one that is no finite number.
 */
export function vectorCode(dimensions: number, most: number, given: unknown): readonly number[] {
  const isList = Array.isArray(given) || (ArrayBuffer.isView(given) && Symbol.iterator in given);
  if (!isList) {
    throw new ValueOutOfDomain(
      `the value is no array of numbers; give ${dimensions} of them, in the order of the coordinates`,
    );
  }
  const numbers = [...(given as Iterable<unknown>)]; // and none is left out
  if (numbers.length !== dimensions) {
    throw new ValueOutOfDomain(
      `${numbers.length} numbers are given, and the vector has ${dimensions}`,
    );
  }
  if (!numbers.every((one) => Number.isFinite(one))) {
    throw new ValueOutOfDomain("one of the vector is no finite number");
  }
  const [largest, scaled] = apart(numbers as number[]);
  const long = length(scaled);
  const shorter = Math.min(largest * long, most) / Math.max(long, 1);
  return scaled.map((x) => shorter * x);
}
