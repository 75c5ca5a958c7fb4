/** What an app may report, as a mechanism takes it: as Metric.code of client/hubbub/catalog. */
import { ValueOutOfDomain } from "../errors.js";
import { valueOf } from "../mechanisms/pairs.js";
import type { Coded } from "../mechanisms/randomizer.js";

/** One answer, or one for each part. */
export type Value = string | number | boolean | Readonly<Record<string, string | number | boolean>>;

/** A number cut into ranges at its edges. clamps: whether one outside counts at the nearest end. */
export interface Ranges {
  readonly kind: string;
  readonly edges: readonly number[];
  readonly clamps: boolean;
}

/** The parts of an answer, each with its values; in ranges, those that are of numbers. */
export interface Parts {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly ranges: ReadonlyMap<string, Ranges>;
}

const OTHER = "other";

/**
 * The place of a listed value.
 *
 * @throws ValueOutOfDomain it is not one of them.
 */
export function listedPlace(
  values: readonly string[],
  value: unknown,
  { ranges, other }: { ranges?: Ranges | undefined; other?: boolean } = {},
): number {
  const text = typeof value === "boolean" ? String(value) : value;
  const place = typeof text === "string" ? values.indexOf(text) : -1;
  if (place >= 0) return place;
  if (ranges) return rangePlace(ranges, value);
  if (other && typeof value === "string") return values.indexOf(OTHER);
  throw new ValueOutOfDomain(`the value is not one of its ${values.length} values`);
}

/**
 * A number between two, at the nearest end if it is to be.
 *
 * @throws ValueOutOfDomain it is no number of this kind.
 */
export function plainNumber(kind: string, value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new ValueOutOfDomain("value is not a number");
  }
  if (kind === "count" && !Number.isInteger(value)) {
    throw new ValueOutOfDomain("value is not a whole number");
  }
  return value;
}

/** Values that were listed as PART=VALUE, part by part. */
export function partsOf(values: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const parts = new Map<string, string[]>();
  for (const listed of values) {
    const equals = listed.indexOf("=");
    const [part, value] = [listed.slice(0, equals), listed.slice(equals + 1)];
    if (equals < 1 || !value) throw new TypeError("values of parts are PART=VALUE");
    parts.set(part, [...(parts.get(part) ?? []), value]);
  }
  return parts;
}

/**
 * The mechanism's value for a value of each part, as { theme: "dark", age: 41 }.
 *
 * @throws ValueOutOfDomain a part is unknown, missing or holds none of its values.
 */
export function partedValue({ values, ranges }: Parts, given: unknown): Coded {
  if (typeof given !== "object" || given === null) {
    throw new ValueOutOfDomain("the value is no object of parts; give each part one of its values");
  }
  const held = new Map(Object.entries(given));
  const missing = [...values.keys()].filter((part) => !held.has(part));
  if (missing.length) throw new ValueOutOfDomain(`part ${missing.join(", ")} is missing`);
  if (held.size > values.size) throw new ValueOutOfDomain("a part is not one of the metric");
  const places = [...values].map(([part, own]) => {
    try {
      return listedPlace(own, held.get(part), { ranges: ranges.get(part) });
    } catch (error) {
      throw new ValueOutOfDomain(`part ${part}: ${(error as Error).message}`);
    }
  });
  const sizes = [...values.values()].map((own) => own.length);
  return valueOf(places, sizes);
}

function rangePlace({ kind, edges, clamps }: Ranges, value: unknown): number {
  const number = plainNumber(kind, value);
  const [first = NaN, last = NaN] = [edges[0], edges[edges.length - 1]];
  if (!clamps && !(first <= number && number <= last)) {
    throw new ValueOutOfDomain(`value is not a number in [${first}, ${last}]`);
  }
  const above = edges.filter((edge) => edge <= number).length - 1;
  return Math.min(Math.max(above, 0), edges.length - 2);
}
