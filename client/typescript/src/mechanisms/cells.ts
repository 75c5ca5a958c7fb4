/** How many cells totals may have, as in client/hubbub/mechanisms/layout.py. */

import { BadParameter } from "../errors.js";

const MAX_CELLS = 2 ** 22;

/** @throws BadParameter totals have too many cells. names: the parameters that decide it. */
export function checkCells(cells: number, names: string): void {
  if (cells > MAX_CELLS) throw new BadParameter(`${names} are too large together`);
}
