/**
 * Randomized response: a yes/no question, answered truthfully more often than not (Warner 1965).
 *
 * It is generalized randomized response over two values, to the last coin: with two there is one
 * other value to name, which takes no coin. Its estimator is `client/hubbub/mechanisms/rr.py`.
 */
import { BadParameter } from "../errors.js";
import { GeneralizedRandomizedResponse } from "./grr.js";

/**
 * Randomized response over the values 0 and 1.
 *
 * @throws BadParameter epsilon is out of range, or there are not two categories.
 */
export function randomizedResponse(
  epsilon: number,
  categories: number,
): GeneralizedRandomizedResponse {
  if (categories !== 2) throw new BadParameter("rr answers a yes/no question; use grr");
  return new GeneralizedRandomizedResponse(epsilon, categories);
}
