/**
 * Numbers in listed ranges, in the form that mechanisms take. As Metric.code of
 * client/hubbub/catalog.
 */
import { ValueOutOfDomain } from "../errors.js";
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
 * A number within the ends; a number outside becomes the nearest end if `clamps`.
 *
 * @throws ValueOutOfDomain it is not a number of this kind.
 */
export function plainNumber(kind: string, unit: string, value: unknown): number {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number)) {
    const remedy = unit ? ` of ${unit}; texts are refused` : "; the largest is 1.8e308";
    throw new ValueOutOfDomain(`value is not a number${remedy}`);
  }
  if (kind === "count" && !Number.isInteger(number)) {
    throw new ValueOutOfDomain("value is not a whole number");
  }
  return number;
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
