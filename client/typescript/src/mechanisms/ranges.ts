/** A range of numbers: checks and divides the values of mechanisms over numbers, exactly. */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import { exact, minus, dividedBy, type Fraction } from "./fraction.js";
import { numberOf, type Arguments } from "./randomizer.js";

/** The maximum number of buckets of a range. */
export const MAX_BUCKETS = 4096;
/** The most buckets of mechanisms whose estimator takes time that grows with their cube. */
export const MAX_FINE_BUCKETS = 1024;

/** The numbers in [low, high]. */
export class Range {
  readonly #wide: Fraction;

  /** @throws BadParameter low is not below high, or floats cannot hold squares of the range. */
  constructor(
    readonly low: number,
    readonly high: number,
  ) {
    if (!(low < high)) throw new BadParameter("low must be below high");
    if (!(low >= -1e100 && high <= 1e100 && high - low >= 1e-100))
      throw new BadParameter("low and high must be within 1e100, and 1e-100 apart");
    this.#wide = minus(exact(high), exact(low));
  }

  /** The range in a mechanism's parameters. */
  static of(settings: Arguments): Range {
    return new Range(numberOf(settings, "low"), numberOf(settings, "high"));
  }

  /**
   * @throws ValueOutOfDomain the value is not a number in the range; the message never shows it.
   */
  check(value: unknown): asserts value is number {
    if (!(typeof value === "number" && this.low <= value && value <= this.high)) {
      throw new ValueOutOfDomain(`value is not a number in [${this.low}, ${this.high}]`);
    }
  }

  /** The position of a value within the range, in [0, units], rounded down. */
  scaled(value: unknown, units: bigint): bigint {
    this.check(value);
    const share = dividedBy(minus(exact(value), exact(this.low)), this.#wide);
    return (share.numerator * units) / share.denominator;
  }

  /**
   * The index of the bucket that contains the value, of `buckets` equal ones; the last one includes
   * `high`.
   */
  bucket(value: unknown, buckets: number): number {
    return Math.min(Number(this.scaled(value, BigInt(buckets))), buckets - 1);
  }
}
