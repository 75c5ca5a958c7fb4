/** The interface of randomizers, which every mechanism of the registry implements. */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import type { BitSource } from "./random_bits.js";
import type { Bytes } from "./packing.js";

/** A device's permanent coins for one metric. */
export interface Memo {
  /** The coins of this purpose: the same at every call, independent between purposes. */
  coins(purpose: Uint8Array): BitSource;
}

/**
 * The input of a mechanism: an index into a list, a string, a number in a range, a set as bits, or
 * a vector of numbers.
 */
export type Coded = number | string | bigint | readonly number[];

/** Turns a value into a payload; all its payloads have one length. */
export interface Randomizer {
  /** The length of every payload. */
  readonly payloadBytes: number;
  /** The maximum loss of one report, in nats, rounded up. */
  readonly privacyLoss: number;
  /** The maximum loss of all reports of one value, in nats; infinite without a permanent step. */
  readonly permanentLoss: number;
  /** Whether its noise is spread unevenly; then nothing is proven about a crowd of its reports. */
  readonly isUneven?: boolean;
  /** Of parts: how many cells there are if each report names one of them; otherwise 0. */
  readonly namedCells?: number;
  /**
   * Checks that a value belongs to the mechanism.
   *
   * @throws ValueOutOfDomain it does not; the message never shows it.
   */
  check(value: unknown): void;
  /**
   * The input of the permanent step, if there is one: values with the same key share a response.
   */
  permanentKey?(value: Coded, memo: Memo): Bytes;
  /**
   * A payload for one value, with the permanent coins from `memo`.
   *
   * @throws ValueOutOfDomain the value is not one of the mechanism's.
   */
  randomize(value: Coded, source: BitSource, memo?: Memo): Bytes;
}

/**
 * The parameters of a mechanism. epsilon: in nats. sizes: the number of values of each part.
 * beginnings: known beginnings of many strings. seed: determines a pool of words.
 */
export interface Arguments {
  readonly epsilon: number;
  readonly categories: number;
  readonly sizes: readonly number[];
  readonly beginnings?: readonly string[];
  readonly seed?: string;
  readonly parameters: Readonly<Record<string, number | undefined>>;
}

/** A mechanism, its version, and the kind of values that it takes. */
export interface Mechanism {
  readonly version: number;
  readonly values: "categories" | "strings" | "numbers" | "parts" | "sets" | "vectors";
  /** @throws BadParameter a parameter is missing or out of range. */
  build(settings: Arguments): Randomizer;
}

const MAX_CATEGORIES = 2 ** 20;

/** A memo that remembers nothing: every coin is new, as for a device that reports once. */
export function forgetful(source: BitSource): Memo {
  return { coins: () => source };
}

/** The number of listed values. */
export function categoriesOf({ categories }: Arguments): number {
  return wholeIn(categories, "categories", 2, MAX_CATEGORIES);
}

/** A parameter that is a whole number in [low, high]. fallback: its value if it is left out. */
export function wholeOf(
  { parameters }: Arguments,
  name: string,
  low: number,
  high: number,
  fallback?: number,
): number {
  return wholeIn(parameters[name] ?? fallback ?? NaN, name, low, high);
}

/** A parameter that may be any number. */
export function numberOf({ parameters }: Arguments, name: string): number {
  const parameter = parameters[name];
  if (parameter === undefined || !Number.isFinite(parameter))
    throw new BadParameter(`${name} is not a number`);
  return parameter;
}

/** An index in [0, categories). */
export function indexIn(categories: number, value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value < categories) {
    return value;
  }
  throw new ValueOutOfDomain(`value is outside [0, ${categories})`);
}

function wholeIn(number: number, name: string, low: number, high: number): number {
  if (Number.isInteger(number) && number >= low && number <= high) return number;
  throw new BadParameter(`${name} ${number} is outside [${low}, ${high}]`);
}
