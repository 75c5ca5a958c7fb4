/** Vectors, for the mechanism `vector.codes`. As client/hubbub/catalog/values/sets_and_vectors.py. */
import { ValueOutOfDomain } from "../errors.js";
import { length } from "../mechanisms/portable_floats.js";
import { scaleOut } from "../mechanisms/vector_codes.js";
import { listed, number, table, text, type Table } from "./json.js";
import type { Metric } from "./metric.js";
import { plain } from "./plain_value.js";

/** The encoding of a metric's vectors, of a bundle's entry; a model has none. */
export function coderOfVectors(entry: Table): Metric["code"] {
  if (entry["model"] !== undefined) {
    return () => {
      throw new ValueOutOfDomain("it is a model: call learn(), not report()");
    };
  }
  const coordinates = listed(entry["values"]).map(text);
  const maxLength = number(table(entry["parameters"])["max_length"] ?? 1);
  return (value) => vectorCode(coordinates, maxLength, value);
}

/**
 * The mechanism's value for an array of numbers: a vector longer than `maxLength` is scaled down to
 * it.
 *
 * @throws ValueOutOfDomain the number of elements is wrong, or one is not a finite number.
 */
function vectorCode(
  coordinates: readonly string[],
  maxLength: number,
  vector: unknown,
): readonly number[] {
  const dimensions = coordinates.length;
  const isList = Array.isArray(vector) || (ArrayBuffer.isView(vector) && Symbol.iterator in vector);
  if (!isList) {
    throw new ValueOutOfDomain(
      `the value is not an array of numbers; give ${dimensions} of them, in the order of the coordinates`,
    );
  }
  const numbers = [...(vector as Iterable<unknown>)].map(plain); // and no element is missing
  if (numbers.length !== dimensions) {
    throw new ValueOutOfDomain(
      `${numbers.length} numbers were passed, but the vector has ${dimensions}`,
    );
  }
  const invalidIndex = numbers.findIndex((number) => !Number.isFinite(number));
  if (invalidIndex >= 0) {
    throw new ValueOutOfDomain(`coordinate "${coordinates[invalidIndex]}" is not a finite number`);
  }
  const [maxMagnitude, scaled] = scaleOut(numbers as number[]);
  const scaledLength = length(scaled);
  const shorter = Math.min(maxMagnitude * scaledLength, maxLength) / Math.max(scaledLength, 1);
  return scaled.map((x) => shorter * x);
}
