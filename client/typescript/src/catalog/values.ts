/** What an app may report, as a mechanism takes it: as Metric.code of client/hubbub/catalog. */
import { ValueOutOfDomain } from "../errors.js";

type Plain = string | number | boolean;

/** One answer, one for each part, or a set of listed values. */
export type Value = Plain | Readonly<Record<string, Plain>> | readonly Plain[] | ReadonlySet<Plain>;

/** A number cut into ranges at its edges. clamps: whether one outside counts at the nearest end. */
export interface Ranges {
  readonly kind: string;
  readonly edges: readonly number[];
  readonly clamps: boolean;
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

function rangePlace({ kind, edges, clamps }: Ranges, value: unknown): number {
  const number = plainNumber(kind, value);
  const [first = NaN, last = NaN] = [edges[0], edges[edges.length - 1]];
  if (!clamps && !(first <= number && number <= last)) {
    throw new ValueOutOfDomain(`value is not a number in [${first}, ${last}]`);
  }
  const above = edges.filter((edge) => edge <= number).length - 1;
  return Math.min(Math.max(above, 0), edges.length - 2);
}
