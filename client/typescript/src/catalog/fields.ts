/** Made of client/hubbub/catalog by: python -m tests.support.typescript_fields */
import type { Fields } from "./unfit.js";

export const METRIC: Fields = {
  description: ["text"],
  owner: ["text"],
  epsilon: [["number", 0.0009765625, 16.0]],
  epoch: [["minute", "hour", "day", "week", "28d", "month"]],
  min_batch: [["integer", 10, 1000000]],
  sampling: [["number", 1e-6, 1], 1.0],
  report_on: [["one day"], ""],
  central_epsilon: [["number", 0.0009765625, 16.0], null],
  crowd: [["integer", 10, 1000000], null],
  delta: [["number", 1e-15, 0.1], 1e-8],
  honest: [["number", 0, 1, true, false], 0.9],
  dummies: [["integer", 0, 1000000], 0],
  dummies_each: [["number", 0, 100], 0.0],
  dummies_scale: [["number", 0, 1000], 0.0],
  dummies_shift: [["integer", 0, 20000], 0],
  count_epsilon: [["number", 0.05, 8], null],
  max_local_epsilon: [["number", 0.0009765625, 16.0], 8.0],
  rolling: ["boolean", false],
  outside: [["clamp", "refuse"], ""],
  other: ["boolean", false],
  unit: ["text", ""],
  supersedes: ["text", ""],
  reports_per_epoch: [["integer", 1, 1000]],
  lifetime_epsilon: [["number", 0, 1000000000000.0]],
  lifetime_central_epsilon: [["number", 0, 1000000000000.0], null],
};

export const CAPS: Fields = {
  epsilon_per_day: [["number", 0, null, true, false], null],
  epsilon_per_month: [["number", 0, null, true, false], null],
  epsilon_per_year: [["number", 0, null, true, false], null],
  central_epsilon_per_year: [["number", 0, null, true, false], null],
  central_delta_per_year: [["number", 1e-10, 0.1], 1e-8],
};
