/**
 * Estimates means by a table of outputs whose worst-case variance is close to the minimum.
 *
 * Source and estimator: mean_lookup_table.py of client/hubbub/mechanisms.
 */
import { windowOf } from "./numbers.js";
import { DIGITS, expAtMost } from "./probability.js";
import type { Arguments, Randomizer } from "./randomizer.js";
import { Range } from "./ranges.js";

/**
 * Each row has epsilon, width, steps, and the coefficients of the outputs at sign(t), t, t^3, t^5
 * and t^7. Any change of a number changes the wire format.
 */
// prettier-ignore
const ROWS: readonly (readonly [number, number, number, ...number[]])[] = [
  [0.25, 12, 12, 7877, 1936, 280, -110, 17],
  [0.5, 12, 12, 6246, 3116, 911, -317, 44],
  [1, 12, 12, 4103, 4094, 2350, -613, 66],
  [1, 5, 6, 7449, -3070, 28841, -41454, 18234],
  [1.25, 5, 6, 6654, -4255, 37020, -51159, 21739],
  [1.5, 5, 6, 6014, -5084, 42043, -55591, 22618],
  [1.5, 4, 6, -5820, 58153, -151005, 201656, -92985],
  [1.9, 4, 6, -3066, 37709, -87260, 115959, -53342],
  [1.9, 5, 8, -7294, 58646, -139433, 171443, -73361],
  [2, 5, 8, -6117, 51001, -114044, 135147, -55987],
  [2.3, 5, 8, -3561, 34132, -58587, 56024, -18009],
  [2.3, 4, 7, -6097, 47627, -97646, 107965, -41849],
  [2.7, 4, 7, -3965, 33574, -57352, 56929, -19185],
  [2.7, 5, 10, -1263, 25995, -33952, 29135, -9915],
  [3, 5, 10, -601, 19895, -19260, 16202, -6235],
  [3, 12, 25, 169, 17712, -3756, -14214, 10088],
  [3.5, 12, 29, 100, 16799, -5484, -6088, 4672],
  [4, 12, 33, 27, 15679, -5766, -1430, 1489],
  [4.5, 12, 41, 0, 16152, -7009, 909, -52],
  [5, 12, 48, 0, 15287, -5942, 691, -36],
  [6, 12, 67, 0, 14335, -4793, 480, -22],
  [7, 12, 94, 0, 13801, -4161, 376, -15],
  [8, 12, 131, 0, 13388, -3679, 303, -11],
  [9, 12, 183, 0, 13135, -3387, 262, -9],
  [10, 12, 256, 0, 12979, -3209, 238, -8],
  [11, 12, 357, 0, 12847, -3058, 218, -7],
  [12, 12, 498, 0, 12756, -2954, 205, -6],
  [14, 12, 970, 0, 12652, -2837, 191, -6],
  [16, 12, 1888, 0, 12594, -2771, 183, -5],
];
const ZERO_ROW = [0, 1, 0] as const;
// The interpolation between two rows has this many units.
const UNITS = 1n << 12n;

/** Reports one of the table's outcomes for a number in a range. */
export function tableMean(parameters: Arguments): Randomizer {
  const range: Range = Range.of(parameters);
  expAtMost(parameters.epsilon); // throws if epsilon is invalid
  const { width, steps, outputs } = tableOf(parameters.epsilon);
  const window = windowOf(parameters.epsilon, steps + 1, width);
  const sums = Array.from({ length: steps + 1 }, (_, start) =>
    outputs.slice(start, start + width).reduce((total, output) => total + output, 0n),
  );
  const lowestSum = sums[0] ?? 0n;
  return {
    ...window,
    check: (value) => {
      range.check(value);
    },
    randomize(value, source) {
      const total = (lowestSum << DIGITS) + range.scaled(value, (-2n * lowestSum) << DIGITS);
      const start = sums.filter((sum) => sum << DIGITS <= total).length - 1;
      const [low = lowestSum, high = low + 1n] = sums.slice(start, start + 2);
      return window.draw(start, source, (total - (low << DIGITS)) / (high - low));
    },
  };
}

/**
 * The width, the steps and the output of each outcome: whole numbers, identical on every machine.
 */
function tableOf(epsilon: number) {
  const nearest = Math.max(epsilon, ROWS[0]?.[0] ?? 0);
  const row = Math.min(ROWS.filter(([from]) => from <= nearest).length, ROWS.length - 1);
  const [low, width, fewest, ...lowerCoefficients] = ROWS[row - 1] ?? ZERO_ROW;
  const [high, , slope, ...upperCoefficients] = ROWS[row] ?? ZERO_ROW;
  const position = new Range(low, high).scaled(nearest, UNITS);
  const interpolated = (a: number, b = 0) => BigInt(a) * (UNITS - position) + BigInt(b) * position;
  const steps = Number((interpolated(fewest, slope) + UNITS / 2n) / UNITS); // the nearest
  const [jump = 0n, ...odd] = lowerCoefficients.map((coefficient, power) =>
    interpolated(coefficient, upperCoefficients[power]),
  );
  const end = BigInt(steps + width - 1);
  const denominator = UNITS * end ** 7n;
  const upper: bigint[] = [];
  for (let place = 2n - (end % 2n); place <= end; place += 2n) {
    // t = place / end
    const sumAbove = odd.reduce(
      (total, coefficient, index) =>
        total + coefficient * place ** BigInt(2 * index + 1) * end ** BigInt(6 - 2 * index),
      jump * end ** 7n,
    );
    upper.push(sumAbove / denominator - (sumAbove % denominator < 0n ? 1n : 0n)); // rounded down
  }
  const lower = upper.map((output) => -output).reverse();
  return { width, steps, outputs: [...lower, ...(end % 2n ? [] : [0n]), ...upper] };
}
