/**
 * Numbers in listed ranges, in the form that mechanisms take. As Metric.code of
 * client/hubbub/catalog.
 */
import { ValueOutOfDomain } from "../errors.js";
import { plain } from "./plain_value.js";
import { listedPlace, placeOf } from "./values.js";

/**
 * A number cut into ranges at its edges. clamps: whether a number outside counts in the nearest
 * range.
 */
export interface Ranges {
  readonly kind: string;
  readonly edges: readonly number[];
  readonly unit: string;
  readonly clamps: boolean;
}

const OTHER_VALUE = "other";
const SIZE = /^([0-9]{1,18}(?:\.[0-9]{1,9})?) *(|[kmg]i?)(b?)$/i;
/** The number of bytes by a unit's prefix, in lower case. */
const BYTES: ReadonlyMap<string, number> = new Map([
  ...([
    ["", 1],
    ["k", 1e3],
    ["m", 1e6],
    ["g", 1e9],
  ] as const),
  ...([
    ["ki", 1 << 10],
    ["mi", 1 << 20],
    ["gi", 1 << 30],
  ] as const),
]);

/**
 * The index of a listed value, of the range that contains a number, or of "other" for another text.
 *
 * @throws ValueOutOfDomain it is none of them.
 */
export function rangedPlace(
  values: readonly string[],
  value: unknown,
  { ranges, other }: { ranges?: Ranges | undefined; other?: boolean },
): number {
  const place = placeOf(values, value);
  if (place >= 0) return place;
  if (ranges) return rangePlace(ranges, value);
  if (other && typeof value !== "string") throw new ValueOutOfDomain("the value is not a string");
  return listedPlace(values, other ? OTHER_VALUE : value);
}

/**
 * A number in the metric's unit.
 *
 * @throws ValueOutOfDomain it is not a number of this kind.
 */
export function plainNumber(kind: string, unit: string, value: unknown): number {
  const number = kind === "size" && typeof value === "string" ? sizeIn(unit, value) : plain(value);
  if (kind === "count" && typeof value !== "bigint" && !Number.isInteger(number)) {
    throw new ValueOutOfDomain("value is not a whole number");
  }
  if (typeof number !== "number" || !Number.isFinite(number)) {
    const also = kind === "size" ? ', nor a text such as "1.5 MiB"' : "";
    throw new ValueOutOfDomain(`value is not a number${also}; the largest is 1.8e308`);
  }
  return number;
}

/** A size such as "1.5 MiB" or "2G", in the unit; undefined for another text. */
function sizeIn(unit: string, size: string): number | undefined {
  const [, digits, prefix = "", suffix = ""] = SIZE.exec(size) ?? [];
  const bytes = prefix || suffix ? BYTES.get(prefix.toLowerCase()) : undefined;
  const unitBytes = BYTES.get(unit.toLowerCase().replace(/b$/, ""));
  return bytes && unitBytes ? (Number(digits) * bytes) / unitBytes : undefined;
}

function rangePlace({ kind, edges, unit, clamps }: Ranges, value: unknown): number {
  const number = plainNumber(kind, unit, value);
  const [lowestEdge = NaN, highestEdge = NaN] = [edges[0], edges[edges.length - 1]];
  if (!clamps && !(lowestEdge <= number && number <= highestEdge)) {
    throw new ValueOutOfDomain(`value is not a number in [${lowestEdge}, ${highestEdge}]`);
  }
  const place = edges.filter((edge) => edge <= number).length - 1;
  return Math.min(Math.max(place, 0), edges.length - 2);
}
