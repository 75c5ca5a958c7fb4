/**
 * Mechanisms over numbers in a range: `mean.one_bit`, `mean.piecewise`, `wave` and `buckets`.
 *
 * Sources and estimators: mean_one_bit.py, mean_piecewise.py, wave.py and bucket_flips.py of
 * client/hubbub/mechanisms.
 */
import { pick, type BitSource } from "./random_bits.js";
import { fraction, nearest, dividedBy, plus, rounded, times, toNumber } from "./fraction.js";
import { index, keepChance, loss } from "./randomized_response.js";
import { indexBytes, concatenated, packed } from "./packing.js";
import { permanent, purpose, type Permanent } from "./permanent.js";
import { atMost, DIGITS, expAtMost, logAtLeast, ONE } from "./probability.js";
import { forgetful, wholeOf, type Arguments, type Randomizer } from "./randomizer.js";
import { MAX_BUCKETS, MAX_FINE_BUCKETS, Range } from "./ranges.js";
import { choose, members } from "./subsets.js";
import { flipped } from "./unary.js";

/** Estimates a mean from one bit a report. */
export function oneBitMean(settings: Arguments): Randomizer {
  const range: Range = Range.of(settings);
  const keep = keepChance(expAtMost(settings.epsilon), 2);
  const lie = ONE - keep;
  return {
    payloadBytes: 1,
    privacyLoss: loss(keep, 2),
    permanentLoss: Infinity,
    check: (value) => {
      range.check(value);
    },
    randomize(value, source) {
      return index(Number(source.chance(lie + range.scaled(value, keep - lie))), 2);
    },
  };
}

/** Estimates a mean from one position a report. */
export function piecewiseMean(settings: Arguments): Randomizer {
  const range: Range = Range.of(settings);
  const steps = wholeOf(settings, "steps", 2, MAX_BUCKETS, 256);
  const odds = expAtMost(settings.epsilon, 0.5);
  const width = Math.max(1, Number(rounded(dividedBy(fraction(BigInt(steps)), odds))));
  const window = windowOf(settings.epsilon, steps + 1, width);
  return {
    ...window,
    check: (value) => {
      range.check(value);
    },
    randomize(value, source) {
      const scaled = range.scaled(value, BigInt(steps) << DIGITS);
      return window.draw(Number(scaled >> DIGITS), source, scaled & (ONE - 1n));
    },
  };
}

/** Square Wave. Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric (SIGMOD 2020). */
export function squareWave(settings: Arguments): Randomizer {
  const range: Range = Range.of(settings);
  const buckets = wholeOf(settings, "buckets", 2, MAX_FINE_BUCKETS);
  const { epsilon } = settings;
  const e = toNumber(expAtMost(epsilon));
  const wide = (epsilon * e - e + 1) / (e * (e - 1 - epsilon)); // as a share of the range
  const width = Math.min(Math.max(1, nearest(wide * buckets)), buckets);
  const window = windowOf(epsilon, buckets, width);
  return {
    ...window,
    check: (value) => {
      range.check(value);
    },
    randomize(value, source) {
      return window.draw(range.bucket(value, buckets), source);
    },
  };
}

/** d-bit flips, every coin permanent. Ding, Kulkarni, Yekhanin (NeurIPS 2017), dBitFlipPM. */
export function bucketFlips(settings: Arguments): Randomizer & Permanent {
  const range: Range = Range.of(settings);
  const buckets = wholeOf(settings, "buckets", 2, MAX_BUCKETS);
  const sampled = wholeOf(settings, "sampled", 2, buckets);
  const lie = flipped(settings.epsilon);
  const loss = logAtLeast(fraction(ONE - lie, lie), 2);
  const key = (value: unknown) => packed(BigInt(range.bucket(value, buckets)), 2).reverse();
  const bytes = indexBytes(2 * buckets);
  return {
    payloadBytes: sampled * bytes,
    privacyLoss: loss,
    permanentLoss: loss,
    check: (value) => {
      range.check(value);
    },
    permanentKey: key,
    randomize(value, source, memo = forgetful(source)) {
      const trueBucket = range.bucket(value, buckets);
      const sampledBuckets = members(choose(buckets, sampled, memo.coins(purpose("buckets"))));
      // PRIVACY: one answer for each of the device's buckets, as long as the device keeps its
      // secret.
      const lies = memo.coins(permanent(key(value))).mask(lie, sampled);
      const answers = sampledBuckets.map((bucket, index) => {
        const yes = (bucket === trueBucket) !== (((lies >> BigInt(index)) & 1n) === 1n);
        return packed(BigInt(2 * bucket + Number(yes)), bytes);
      });
      return concatenated(...answers);
    },
  };
}

/**
 * A window over a line of outcomes: a report is uniform within its window with probability
 * `inside`, and otherwise uniform outside of it. starts: the number of positions at which a window
 * may begin. up: the threshold of the probability that the window begins one position later.
 */
export function windowOf(epsilon: number, starts: number, width: number) {
  const insideWeight = times(expAtMost(epsilon), fraction(BigInt(width)));
  const otherStarts = BigInt(starts - 1);
  // PRIVACY: rounded down, towards uniform
  const insideChance = atMost(dividedBy(insideWeight, plus(insideWeight, fraction(otherStarts))));
  const size = starts + width - 1;
  return {
    payloadBytes: indexBytes(size),
    privacyLoss: logAtLeast(
      fraction(insideChance * otherStarts, BigInt(width) * (ONE - insideChance)),
    ),
    isUneven: width > 1,
    permanentLoss: Infinity,
    draw(from: number, source: BitSource, extraChance = 0n) {
      const start = from + (extraChance ? Number(source.chance(extraChance)) : 0);
      if (source.chance(insideChance)) return index(start + pick(source, width), size);
      const otherStart = pick(source, starts - 1); // skips the window
      return index(otherStart + (otherStart >= start ? width : 0), size);
    },
  };
}
