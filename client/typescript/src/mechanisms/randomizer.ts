/** What a randomizer is: the contract that every entry of the registry keeps. */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import type { BitSource } from "./bits.js";
import type { Bytes } from "./packing.js";

/** A device's memory of its permanent coins, for one metric. */
export interface Memo {
  /** The coins of this purpose: the same at every call, independent between purposes. */
  coins(purpose: Uint8Array): BitSource;
}

/**
 * What a mechanism takes: an index into a list, a string, a number in a range, a set's bits, or a
 * vector's numbers.
 */
export type Coded = number | string | bigint | readonly number[];

/** Turns a value into a payload; all its payloads have one length. */
export interface Randomizer {
  /** The length of every payload. */
  readonly payloadBytes: number;
  /** The most that one report can say, in nats, rounded up. */
  readonly privacyLoss: number;
  /** The most that all reports of one value can say; infinite without a permanent step. */
  readonly permanentLoss: number;
  /** Whether its lies are not spread alike, so that nothing is proven of a crowd of it. */
  readonly isUneven?: boolean;
  /**
   * Whether it is one of its values.
   *
   * @throws ValueOutOfDomain it is not; the message never shows it.
   */
  check(value: unknown): void;
  /** What the permanent step depends on, where there is one: values with one key share a response. */
  permanentKey?(value: Coded, memo: Memo): Bytes;
  /**
   * A payload for one value, with the permanent coins from `memo`.
   *
   * @throws ValueOutOfDomain the value is not one of the mechanism's.
   */
  randomize(value: Coded, source: BitSource, memo?: Memo): Bytes;
}

/**
 * What a mechanism is built from. epsilon: in nats. sizes: how many values each part has.
 * beginnings: what many strings are known to begin with. seed: of a pool of words.
 */
export interface Arguments {
  readonly epsilon: number;
  readonly categories: number;
  readonly sizes: readonly number[];
  readonly beginnings?: readonly string[];
  readonly seed?: string;
  readonly parameters: Readonly<Record<string, number | undefined>>;
}

/** A mechanism, the version of it that is meant, and what kind of values it takes. */
export interface Mechanism {
  readonly version: number;
  readonly values: "categories" | "strings" | "numbers" | "parts" | "sets" | "vectors";
  /** @throws BadParameter a parameter is missing or out of range. */
  build(settings: Arguments): Randomizer;
}

const MAX_CATEGORIES = 2 ** 20;

/** A memory that remembers nothing: every coin fresh, as for a device that reports once. */
export function forgetful(source: BitSource): Memo {
  return { coins: () => source };
}

/** How many listed values there are. */
export function categoriesOf({ categories }: Arguments): number {
  return whole(categories, "categories", 2, MAX_CATEGORIES);
}

/** A parameter that is a whole number in [low, high]. fallback: where it need not be given. */
export function wholeOf(
  { parameters }: Arguments,
  name: string,
  low: number,
  high: number,
  fallback?: number,
): number {
  return whole(parameters[name] ?? fallback ?? NaN, name, low, high);
}

/** A parameter that is any number. */
export function numberOf({ parameters }: Arguments, name: string): number {
  const parameter = parameters[name];
  if (parameter === undefined || !Number.isFinite(parameter))
    throw new BadParameter(`${name} is no number`);
  return parameter;
}

/** An index in [0, categories). */
export function indexIn(categories: number, value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value < categories) {
    return value;
  }
  throw new ValueOutOfDomain(`value is outside [0, ${categories})`);
}

function whole(number: number, name: string, low: number, high: number): number {
  if (Number.isInteger(number) && number >= low && number <= high) return number;
  throw new BadParameter(`${name} ${number} is outside [${low}, ${high}]`);
}
