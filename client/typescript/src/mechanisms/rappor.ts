/**
 * RAPPOR: randomizes each bit permanently, then once more for each report; over listed values, or
 * over strings as Bloom filters in cohorts.
 *
 * The letters are the paper's. f: the probability that a permanent bit is a coin. p and q: the
 * probabilities that a permanent 0, or a permanent 1, is reported as 1. Source: Erlingsson, Pihur,
 * Korolova (CCS 2014); estimators: rappor.py, rappor_basic.py and two_step_response.py of
 * client/hubbub/mechanisms.
 */
import { BadParameter } from "../errors.js";
import { pick, type BitSource } from "./random_bits.js";
import { checkCells } from "./cells.js";
import { exact, fraction, minus, dividedBy, plus, times } from "./fraction.js";
import { utf8Bytes, positions } from "./hashing.js";
import { concatenated, packed, vectorBytes } from "./packing.js";
import { packedIndex, permanent, purpose, type Permanent } from "./permanent.js";
import { atLeast, atMost, chanceOf, logAtLeast, ONE } from "./probability.js";
import {
  categoriesOf,
  forgetful,
  indexIn,
  numberOf,
  wholeOf,
  type Arguments,
  type Memo,
  type Randomizer,
} from "./randomizer.js";

/** `rappor.basic`: one bit for each listed value. */
export function basicRappor(settings: Arguments): Randomizer & Permanent {
  const categories = categoriesOf(settings);
  const chain = chainOf(settings, 1);
  const key = (value: unknown) => packedIndex(indexIn(categories, value));
  return {
    payloadBytes: vectorBytes(categories),
    privacyLoss: chain.loss,
    permanentLoss: chain.permanentLoss,
    check: (value) => void indexIn(categories, value),
    permanentKey: key,
    randomize(value, source, memo = forgetful(source)) {
      const trueBit = 1n << BigInt(indexIn(categories, value));
      const bits = chain.respond(trueBit, categories, permanent(key(value)), source, memo);
      return packed(bits, vectorBytes(categories));
    },
  };
}

/** `rappor`: `bits` Bloom bits, `hashes` hash functions and `cohorts` cohorts. */
export function rappor(settings: Arguments): Randomizer & Permanent {
  const bits = wholeOf(settings, "bits", 1, 4096);
  const hashes = wholeOf(settings, "hashes", 1, Math.min(8, bits));
  const cohorts = wholeOf(settings, "cohorts", 1, 1 << 16);
  checkCells(cohorts * bits, "cohorts and bits");
  const chain = chainOf(settings, hashes);
  return {
    payloadBytes: 2 + vectorBytes(bits),
    privacyLoss: chain.loss,
    permanentLoss: chain.permanentLoss,
    check: (value) => void utf8Bytes(value),
    permanentKey: utf8Bytes,
    randomize(value, source, memo = forgetful(source)) {
      const string = utf8Bytes(value);
      const cohort = pick(memo.coins(purpose("cohort")), cohorts);
      const bloom = positions(string, cohort, hashes, bits).reduce(
        (sum, position) => sum | (1n << BigInt(position)),
        0n,
      );
      // PRIVACY: one permanent response per string, for as long as the device keeps its secret.
      const reportBits = chain.respond(bloom, bits, permanent(string), source, memo);
      return concatenated(packed(BigInt(cohort), 2), packed(reportBits, vectorBytes(bits)));
    },
  };
}

interface Chain {
  readonly loss: number;
  readonly permanentLoss: number;
  respond(
    bits: bigint,
    width: number,
    permanentCoins: Uint8Array,
    source: BitSource,
    memo: Memo,
  ): bigint;
}

function chainOf(settings: Arguments, hashes: number): Chain {
  const [f, p, q] = [numberOf(settings, "f"), numberOf(settings, "p"), numberOf(settings, "q")];
  if (!(f > 0 && f < 1 && 0 <= p && p < q && q <= 1)) {
    throw new BadParameter("f, p and q break 0 < f < 1 or 0 <= p < q <= 1");
  }
  // PRIVACY: rounded towards more noise.
  const flip = atLeast(dividedBy(exact(f), fraction(2n)));
  const [oneAfterZero, oneAfterOne] = [atLeast(exact(p)), atMost(exact(q))];
  const [lie, afterOne, zero] = [
    chanceOf(2n * flip),
    chanceOf(oneAfterOne),
    chanceOf(oneAfterZero),
  ];
  const certain = fraction(1n);
  const meanLie = dividedBy(times(lie, plus(zero, afterOne)), fraction(2n));
  const trueOne = plus(meanLie, times(minus(certain, lie), afterOne));
  const trueZero = plus(meanLie, times(minus(certain, lie), zero));
  const ratio = dividedBy(
    times(trueOne, minus(certain, trueZero)),
    times(trueZero, minus(certain, trueOne)),
  );
  return {
    loss: logAtLeast(ratio, hashes),
    permanentLoss: logAtLeast(fraction(ONE - flip, flip), 2 * hashes),
    respond(bits, width, permanentCoins, source, memo) {
      const permanent = bits ^ memo.coins(permanentCoins).mask(flip, width);
      const ones = source.mask(oneAfterOne, width);
      const zeros = source.mask(oneAfterZero, width);
      return (permanent & ones) | (~permanent & zeros);
    },
  };
}
