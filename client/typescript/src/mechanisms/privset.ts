/**
 * PrivSet: reports a few values, which are more likely to include a member of the device's set.
 *
 * A set is a number whose bit i is 1 if i is a member. Source and estimator:
 * client/hubbub/mechanisms/privset.py.
 */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import type { BitSource } from "./random_bits.js";
import { fraction, minus, dividedBy, plus, times, toNumber } from "./fraction.js";
import { packed, vectorBytes } from "./packing.js";
import { atMost, expAtMost, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, wholeOf, type Arguments, type Randomizer } from "./randomizer.js";
import { members, numbered, binomial } from "./subsets.js";

const MAX_CATEGORIES = 2 ** 12;
const MAX_MEMBERS = 64;

/** `privset`. Wang, Huang, Nie, Xiao, Xu, Yin (INFOCOM 2018). */
export function privSet(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  if (categories > MAX_CATEGORIES) {
    throw new BadParameter(`categories ${categories} is outside [2, ${MAX_CATEGORIES}] of sets`);
  }
  const maxMembers = wholeOf(settings, "most", 1, Math.min(MAX_MEMBERS, categories));
  const odds = expAtMost(settings.epsilon);
  const paddedCount = categories + maxMembers;
  const sentCount = choiceOf(categories, maxMembers, toNumber(odds));
  // The weight of the choices that include no member of a set.
  let missChance = fraction(1n);
  for (let number = 0; number < maxMembers; number += 1) {
    missChance = times(
      missChance,
      fraction(BigInt(paddedCount - sentCount - number), BigInt(paddedCount - number)),
    );
  }
  const meetChance = minus(fraction(1n), missChance);
  const meetWeight = times(odds, meetChance);
  // PRIVACY: rounded down, towards uniform
  const meet = atMost(dividedBy(meetWeight, plus(meetWeight, missChance)));
  const choices = choicesOf(categories, maxMembers, sentCount);
  return {
    payloadBytes: vectorBytes(paddedCount),
    privacyLoss: logAtLeast(dividedBy(times(missChance, fraction(meet, ONE - meet)), meetChance)),
    permanentLoss: Infinity,
    check: (value) => void setIn(categories, value),
    randomize(value, source) {
      const padded = filled(members(setIn(categories, value)), categories, maxMembers, source);
      // PRIVACY: only this coin depends on epsilon; afterwards all choices of its kind are equally
      // likely.
      const meets = source.chance(meet);
      const [commonCount, number] = meets ? choices.meeting(source) : choices.missing(source);
      const otherChoices = choices.apart(commonCount);
      const mine = members(numbered(maxMembers, commonCount, number / otherChoices));
      const theirs = members(numbered(categories, sentCount - commonCount, number % otherChoices));
      const otherPlaces = Array.from({ length: paddedCount }, (_, place) => place).filter(
        (place) => !padded.includes(place),
      );
      const picked = [
        ...mine.map((index) => padded[index]),
        ...theirs.map((index) => otherPlaces[index]),
      ];
      const bits = picked.reduce((sum, place = 0) => sum | (1n << BigInt(place)), 0n);
      return packed(bits, vectorBytes(paddedCount));
    },
  };
}

/**
 * A set of categories in [0, categories), as bits. @throws ValueOutOfDomain the value is not such a
 * set.
 */
function setIn(categories: number, value: unknown): bigint {
  const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
  const set = isWhole ? BigInt(value as bigint | number) : -1n;
  if (set >= 0n && set >> BigInt(categories) === 0n) return set;
  throw new ValueOutOfDomain(`a member of the set is outside [0, ${categories})`);
}

/**
 * `count` members: a smaller set is filled up with categories that stand for nothing, and a larger
 * one is sampled.
 */
function filled(values: readonly number[], categories: number, count: number, source: BitSource) {
  if (values.length <= count) {
    const padding = Array.from({ length: count - values.length }, (_, index) => categories + index);
    return [...values, ...padding];
  }
  const chosenBits = numbered(values.length, count, source.below(binomial(values.length, count)));
  return members(chosenBits).map((index) => values[index] ?? 0);
}

/**
 * The numbering of all choices: first by the number of members of the set, then by which members.
 */
function choicesOf(categories: number, maxMembers: number, sentCount: number) {
  // For each number of members, the number of ways to choose the others.
  const waysToComplete = [binomial(categories, sentCount)];
  const upTo = [0n];
  for (let commonCount = 1; commonCount <= Math.min(maxMembers, sentCount); commonCount += 1) {
    const previousWays = waysToComplete[commonCount - 1] ?? 0n;
    const ways =
      (previousWays * BigInt(sentCount - commonCount + 1)) /
      BigInt(categories - sentCount + commonCount);
    waysToComplete.push(ways);
    upTo.push((upTo[commonCount - 1] ?? 0n) + binomial(maxMembers, commonCount) * ways);
  }
  const apart = (commonCount: number) => waysToComplete[commonCount] ?? 1n;
  return {
    apart,
    missing: (source: BitSource): [number, bigint] => [0, source.below(apart(0))],
    meeting(source: BitSource): [number, bigint] {
      const number = source.below(upTo[upTo.length - 1] ?? 1n);
      const commonCount = upTo.findIndex((upto) => number < upto);
      return [commonCount, number - (upTo[commonCount - 1] ?? 0n)];
    },
  };
}

/**
 * The number of values to send, with the smallest variance of the estimate of a value that nobody
 * has.
 *
 * Only sums, products and quotients in Python's order, so that every machine rounds alike.
 */
function choiceOf(categories: number, maxMembers: number, odds: number): number {
  const paddedCount = categories + maxMembers;
  let missChance = 1;
  let [bestCount, minVariance] = [1, Infinity];
  for (let k = 1; k <= categories; k += 1) {
    missChance *= (categories - k + 1) / (paddedCount - k + 1);
    const normalizer = odds * (1 - missChance) + missChance;
    const p = (odds * k) / paddedCount / normalizer;
    const q =
      (odds * (k / paddedCount - (missChance * k) / categories) + (missChance * k) / categories) /
      normalizer;
    const variance = p > q ? (q * (1 - q)) / ((p - q) * (p - q)) : Infinity;
    if (variance < minVariance) [bestCount, minVariance] = [k, variance];
  }
  return bestCount;
}
