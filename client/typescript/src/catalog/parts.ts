/** Answers with several parts, for the mechanism `pairs`. As client/hubbub/catalog. */
import { ValueOutOfDomain } from "../errors.js";
import { rangedPlace, type Ranges } from "./ranges.js";
import { readable } from "./values.js";

/** The parts of an answer with their values, and the ranges of the numeric parts. */
export interface Parts {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly ranges: ReadonlyMap<string, Ranges>;
}

/** The values of each part, from a list of PART=VALUE. */
export function partsOf(values: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const parts = new Map<string, string[]>();
  for (const entry of values) {
    const equals = entry.indexOf("=");
    const [part, value] = [entry.slice(0, equals), entry.slice(equals + 1)];
    if (equals < 1 || !value) throw new TypeError("a value of parts is not written PART=VALUE");
    parts.set(part, [...(parts.get(part) ?? []), value]);
  }
  return parts;
}

/**
 * The mechanism's value for a value of each part, as { theme: "dark", age: 41 }.
 *
 * @throws ValueOutOfDomain a part is unknown, missing or holds none of its values.
 */
export function partedValue({ values, ranges }: Parts, value: unknown): number {
  const remedy = `give each of ${[...values.keys()].join(", ")} one of its values`;
  if (typeof value !== "object" || value === null) {
    throw new ValueOutOfDomain(`the value is not an object of parts; ${remedy}`);
  }
  const partValues = new Map(Object.entries(value));
  const missingParts = [...values.keys()].filter((part) => !partValues.has(part));
  if (missingParts.length) {
    throw new ValueOutOfDomain(`part ${missingParts.join(", ")} is missing; ${remedy}`);
  }
  if (partValues.size > values.size) {
    throw new ValueOutOfDomain(`the value has a part that the metric does not have; ${remedy}`);
  }
  const places = [...values].map(([part, listedValues]) => {
    try {
      return rangedPlace(listedValues, partValues.get(part), { ranges: ranges.get(part) });
    } catch (error) {
      throw new ValueOutOfDomain(`part ${part}: ${readable(error)}`);
    }
  });
  // The indices in the parts as one number; the last part varies fastest.
  return [...values.values()].reduce(
    (sum, options, index) => sum * options.length + (places[index] ?? 0),
    0,
  );
}
