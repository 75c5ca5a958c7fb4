/**
 * Gaussian differential privacy: the loss of a crowd as one number, mu.
 *
 * Dong, Roth, Su (JRSS B 2022). As gaussian_privacy.py, rounded to the safe side.
 */

const CLOSE = 1e-9;
const ROUNDING = 1e-12;
const MAX_MU = 1e6;

/** The largest mu whose epsilon at delta is not above the given epsilon, rounded down. */
export function muWithin(epsilon: number, delta: number): number {
  let [low, high] = [0, 1];
  while (deltaOf(high, epsilon) <= delta) [low, high] = [high, 2 * high];
  while (high - low > CLOSE * high) {
    const middle = (low + high) / 2;
    if (deltaOf(middle, epsilon) <= delta) low = middle;
    else high = middle;
  }
  return low;
}

/** The epsilon of mu at delta, in nats, rounded up. */
export function epsilonOf(mu: number, delta: number): number {
  let [low, high] = [0, 1];
  while (deltaOf(mu, high) > delta && high < MAX_MU) [low, high] = [high, 2 * high];
  while (high - low > CLOSE * high) {
    const middle = (low + high) / 2;
    if (deltaOf(mu, middle) <= delta) high = middle;
    else low = middle;
  }
  return high;
}

/** The delta of Gaussians mu apart at an epsilon, rounded up. */
function deltaOf(mu: number, epsilon: number): number {
  const [lowerTail, upperTail] = [tail(epsilon / mu - mu / 2), tail(epsilon / mu + mu / 2)];
  return (
    lowerTail - (upperTail > 0 ? Math.exp(epsilon + Math.log(upperTail)) : 0) + ROUNDING * lowerTail
  );
}

/**
 * The probability that a standard Gaussian is above x: by a series, for large x by a continued
 * fraction.
 */
function tail(x: number): number {
  if (x < 0) return 1 - tail(-x);
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  if (x < 3) {
    let [term, sum] = [x, x];
    for (let n = 3; term > sum * 1e-18; n += 2) {
      term *= (x * x) / n;
      sum += term;
    }
    return 0.5 - density * sum;
  }
  let denominator = x;
  for (let n = 200; n >= 1; n -= 1) denominator = x + n / denominator;
  return density / denominator;
}
