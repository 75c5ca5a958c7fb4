/**
 * Converts an app's values into the form that mechanisms take. As Metric.code of
 * client/hubbub/catalog.
 */
import { NotListed, ValueOutOfDomain } from "../errors.js";

type PlainValue = string | number | bigint | boolean;

/** One answer, an answer for each part, a set of listed values, or the numbers of a vector. */
export type Value =
  | PlainValue
  | Readonly<Record<string, PlainValue>>
  | readonly PlainValue[]
  | ReadonlySet<PlainValue>
  | Float32Array
  | Float64Array;

/** Features of a person: by the features' names, or a list in their order. */
export type Features =
  | Readonly<Record<string, PlainValue>>
  | ReadonlyMap<string, PlainValue>
  | readonly PlainValue[]
  | Float32Array
  | Float64Array;

/** What a model predicts about a person. */
export type Label = PlainValue;

/**
 * A description of an error that was thrown while a value was read. An object of the app may throw
 * anything, and the error's text may contain the value.
 */
export function readable(error: unknown): string {
  return error instanceof ValueOutOfDomain ? error.message : "the value cannot be read";
}

/** Returns what `compute` does. @throws its NotListed, else ValueOutOfDomain, after the subject. */
export function withSubject<Result>(subject: string, compute: () => Result): Result {
  try {
    return compute();
  } catch (error) {
    const WrongValue = error instanceof NotListed ? NotListed : ValueOutOfDomain;
    throw new WrongValue(`${subject}: ${readable(error)}`);
  }
}

/** The index of a listed value; -1 if it is not listed. */
export function placeOf(values: readonly string[], value: unknown): number {
  return values.indexOf(typeof value === "boolean" ? String(value) : (value as string));
}

/** The index of a listed value. @throws NotListed it is not listed, or missing. */
export function listedPlace(values: readonly string[], value: unknown): number {
  const place = placeOf(values, value);
  if (place < 0) {
    const problem =
      (value ?? null) === null ? "no value was given; it has" : "the value is not one of its";
    throw new NotListed(`${problem} ${values.length} values`);
  }
  return place;
}
