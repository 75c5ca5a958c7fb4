/** What an app may report, as a mechanism takes it: as Metric.code of client/hubbub/catalog. */
import { ValueOutOfDomain } from "../errors.js";

type Plain = string | number | bigint | boolean;

/** One answer, one for each part, a set of listed values, or the numbers of a vector. */
export type Value =
  | Plain
  | Readonly<Record<string, Plain>>
  | readonly Plain[]
  | ReadonlySet<Plain>
  | Float32Array
  | Float64Array;

/** What an app knows of a person: by the features' names, or one for each in their order. */
export type Features =
  | Readonly<Record<string, Plain>>
  | ReadonlyMap<string, Plain>
  | readonly Plain[]
  | Float32Array
  | Float64Array;

/** What a model is to foretell of a person. */
export type Label = Plain;

/**
 * What is wrong with a value, by what was thrown as it was read: an object of the app's may throw
 * anything, and its text may hold the value.
 */
export function readable(error: unknown): string {
  return error instanceof ValueOutOfDomain ? error.message : "the value cannot be read";
}

/** The place of a listed value; -1 if it is none of them. */
export function placeOf(values: readonly string[], value: unknown): number {
  return values.indexOf(typeof value === "boolean" ? String(value) : (value as string));
}

/**
 * The place of a listed value.
 *
 * @throws ValueOutOfDomain it is not one of them.
 */
export function listedPlace(values: readonly string[], value: unknown): number {
  const place = placeOf(values, value);
  if (place < 0) throw new ValueOutOfDomain(`the value is not one of its ${values.length} values`);
  return place;
}
