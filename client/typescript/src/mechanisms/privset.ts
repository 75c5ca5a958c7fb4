/**
 * PrivSet: of a set of values, a few values, more often such as meet the set.
 *
 * A set is a number whose bit i says whether i is a member. Source and estimator:
 * client/hubbub/mechanisms/privset.py.
 */
import { BadParameter, ValueOutOfDomain } from "../errors.js";
import type { BitSource } from "./bits.js";
import { fraction, minus, over, plus, times, toNumber } from "./fraction.js";
import { packed, vectorBytes } from "./packing.js";
import { atMost, expAtMost, logAtLeast, ONE } from "./probability.js";
import { categoriesOf, wholeOf, type Arguments, type Randomizer } from "./randomizer.js";
import { members, numbered, ways } from "./subsets.js";

const MAX_CATEGORIES = 2 ** 12;
const MAX_MEMBERS = 64;

/** `privset`. Wang, Huang, Nie, Xiao, Xu, Yin (INFOCOM 2018). */
export function privSet(settings: Arguments): Randomizer {
  const categories = categoriesOf(settings);
  if (categories > MAX_CATEGORIES) {
    throw new BadParameter(`categories ${categories} is outside [2, ${MAX_CATEGORIES}] of sets`);
  }
  const most = wholeOf(settings, "most", 1, Math.min(MAX_MEMBERS, categories));
  const odds = expAtMost(settings.epsilon);
  const every = categories + most;
  const sent = choiceOf(categories, most, toNumber(odds));
  // Of all choices those that have none of a set.
  let missing = fraction(1n);
  for (let shared = 0; shared < most; shared += 1) {
    missing = times(missing, fraction(BigInt(every - sent - shared), BigInt(every - shared)));
  }
  const meeting = minus(fraction(1n), missing);
  const meetingOdds = times(odds, meeting);
  const meet = atMost(over(meetingOdds, plus(meetingOdds, missing))); // PRIVACY: down, to uniform
  const choices = choicesOf(categories, most, sent);
  return {
    payloadBytes: vectorBytes(every),
    privacyLoss: logAtLeast(over(times(missing, fraction(meet, ONE - meet)), meeting)),
    permanentLoss: Infinity,
    check: (value) => void setIn(categories, value),
    randomize(value, source) {
      const padded = filled(members(setIn(categories, value)), categories, most, source);
      // PRIVACY: the one coin that looks at epsilon; what follows is all such choices alike.
      const meets = source.chance(meet);
      const [some, number] = meets ? choices.meeting(source) : choices.missing(source);
      const apart = choices.apart(some);
      const mine = members(numbered(most, some, number / apart));
      const theirs = members(numbered(categories, sent - some, number % apart));
      const others = Array.from({ length: every }, (_, place) => place).filter(
        (place) => !padded.includes(place),
      );
      const picked = [...mine.map((at) => padded[at]), ...theirs.map((at) => others[at])];
      const bits = picked.reduce((sum, place = 0) => sum | (1n << BigInt(place)), 0n);
      return packed(bits, vectorBytes(every));
    },
  };
}

/** A set of [0, categories), as bits. @throws ValueOutOfDomain it is none. */
function setIn(categories: number, value: unknown): bigint {
  const whole = typeof value === "bigint" || Number.isSafeInteger(value);
  const set = whole ? BigInt(value as bigint | number) : -1n;
  if (set >= 0n && set >> BigInt(categories) === 0n) return set;
  throw new ValueOutOfDomain(`a member of the set is outside [0, ${categories})`);
}

/** So many members: filled up with those of nobody, or drawn of more. */
function filled(own: readonly number[], categories: number, most: number, source: BitSource) {
  if (own.length <= most) {
    const nobodys = Array.from({ length: most - own.length }, (_, at) => categories + at);
    return [...own, ...nobodys];
  }
  const drawn = numbered(own.length, most, source.below(ways(own.length, most)));
  return members(drawn).map((at) => own[at] ?? 0);
}

/** The numbers of all choices: of how many of the set each is, and which of those. */
function choicesOf(categories: number, most: number, sent: number) {
  // By how many of the set: in how many ways the others are chosen.
  const others = [ways(categories, sent)];
  const upTo = [0n];
  for (let some = 1; some <= Math.min(most, sent); some += 1) {
    const before = others[some - 1] ?? 0n;
    const now = (before * BigInt(sent - some + 1)) / BigInt(categories - sent + some);
    others.push(now);
    upTo.push((upTo[some - 1] ?? 0n) + ways(most, some) * now);
  }
  const apart = (some: number) => others[some] ?? 1n;
  return {
    apart,
    missing: (source: BitSource): [number, bigint] => [0, source.below(apart(0))],
    meeting(source: BitSource): [number, bigint] {
      const number = source.below(upTo[upTo.length - 1] ?? 1n);
      const some = upTo.findIndex((upto) => number < upto);
      return [some, number - (upTo[some - 1] ?? 0n)];
    },
  };
}

/**
 * How many values are sent: of the least variance of what nobody holds.
 *
 * In sums, products and quotients alone, which every machine rounds alike: in Python's order.
 */
function choiceOf(categories: number, most: number, odds: number): number {
  const every = categories + most;
  let missing = 1;
  let [best, least] = [1, Infinity];
  for (let k = 1; k <= categories; k += 1) {
    missing *= (categories - k + 1) / (every - k + 1);
    const whole = odds * (1 - missing) + missing;
    const p = (odds * k) / every / whole;
    const q =
      (odds * (k / every - (missing * k) / categories) + (missing * k) / categories) / whole;
    const variance = p > q ? (q * (1 - q)) / ((p - q) * (p - q)) : Infinity;
    if (variance < least) [best, least] = [k, variance];
  }
  return best;
}
