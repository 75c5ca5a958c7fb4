/**
 * Haar response: a report is one index, a sign in one level of halvings of the range.
 *
 * Source and estimator: client/hubbub/mechanisms/haar.py.
 */
import { pick } from "./random_bits.js";
import { isNegative } from "./hadamard.js";
import { bitLength, indexBytes } from "./packing.js";
import { expAtMost } from "./probability.js";
import { index, keepChance, loss } from "./randomized_response.js";
import { wholeOf, type Arguments, type Randomizer } from "./randomizer.js";
import { MAX_FINE_BUCKETS, Range } from "./ranges.js";

/** `haar`. Cormode, Kulkarni, Srivastava (VLDB 2019), HaarHRR. */
export function haarResponse(settings: Arguments): Randomizer {
  const range: Range = Range.of(settings);
  const buckets = wholeOf(settings, "buckets", 2, MAX_FINE_BUCKETS);
  const levels = bitLength(buckets - 1);
  const size = 2 * (2 ** levels - 1);
  const keep = keepChance(expAtMost(settings.epsilon), 2);
  return {
    payloadBytes: indexBytes(size),
    privacyLoss: loss(keep, 2),
    permanentLoss: Infinity,
    check: (value) => {
      range.check(value);
    },
    randomize(value, source) {
      const bucket = range.bucket(value, buckets);
      const level = pick(source, levels);
      const row = pick(source, 2 ** level);
      const prefix = bucket >> (levels - level - 1);
      const isUpper = (prefix & 1) === 1;
      const trulyMinus = isUpper !== isNegative(row, prefix >> 1);
      const isMinus = trulyMinus === source.chance(keep);
      return index(2 * (2 ** level - 1 + row) + Number(isMinus), size);
    },
  };
}
