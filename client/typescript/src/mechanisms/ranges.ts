/** A range of numbers: what mechanisms over numbers check and divide, exactly. */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import { exact, minus, over, type Fraction } from "./fraction.js";
import { numberOf, type Arguments } from "./randomizer.js";

/** The finest cut of a range. */
export const MAX_BUCKETS = 4096;

/** The numbers in [low, high]. */
export class Range {
  readonly #wide: Fraction;

  /** @throws BadParameter low is not below high. */
  constructor(
    readonly low: number,
    readonly high: number,
  ) {
    if (!(low < high))
      throw new BadParameter("low and high are not a range: low must be below high");
    this.#wide = minus(exact(high), exact(low));
  }

  /** The range that a mechanism's parameters say. */
  static of(settings: Arguments): Range {
    return new Range(numberOf(settings, "low"), numberOf(settings, "high"));
  }

  /** @throws ValueOutOfDomain it is no number in the range; the message never shows it. */
  check(value: unknown): asserts value is number {
    if (!(typeof value === "number" && this.low <= value && value <= this.high)) {
      throw new ValueOutOfDomain(`value is not a number in [${this.low}, ${this.high}]`);
    }
  }

  /** How far up the range a value is, in so many units, rounded down. */
  scaled(value: unknown, units: bigint): bigint {
    this.check(value);
    const share = over(minus(exact(value), exact(this.low)), this.#wide);
    return (share.above * units) / share.below;
  }

  /** Which of so many equal buckets holds the value; the last one holds `high` too. */
  bucket(value: unknown, buckets: number): number {
    return Math.min(Number(this.scaled(value, BigInt(buckets))), buckets - 1);
  }
}
