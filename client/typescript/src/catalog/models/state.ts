/**
 * The state of models: the signed weights from which a round's devices compute gradients, the same
 * bytes for everybody.
 *
 * As client/hubbub/bundles/model_state.py.
 */
import { BadParameter, HubbubError, NotLoaded } from "../../errors.js";
import type { Bytes } from "../../mechanisms/packing.js";
import { linesOf } from "../encoding.js";
import { listed, number, table, type Table } from "../json.js";
import type { ModelState } from "../metric.js";
import { signedLines } from "../signed_lines.js";

const LARGEST_BYTES = 512 << 10;
const MAX_ROUNDS = 1 << 10;
const LARGEST_WEIGHT = 1e9;
const NAME_PATTERN = /^[a-z][a-z0-9_.-]{0,63}$/;

/** The state of models is unreadable, altered, another operator's, or does not fit. */
export class ModelsRefused extends HubbubError {
  override readonly name = "ModelsRefused";
}

/**
 * The states in the bytes, by the model's name. operator: the key in base64 that signed the app's
 * bundle; it, or a key that it handed over to, must have signed the states.
 *
 * @throws ModelsRefused the bytes are malformed, altered or another operator's; then no state is
 * used.
 */
export async function openModels(
  stateBytes: Bytes,
  operator: string,
): Promise<ReadonlyMap<string, ModelState>> {
  if (stateBytes.length > LARGEST_BYTES) {
    throw new ModelsRefused(
      `larger than ${LARGEST_BYTES >> 10} KiB, the limit of a state of models`,
    );
  }
  try {
    const [head, body, ...extraLines] = linesOf(stateBytes);
    if (!head || !body || extraLines.length) throw new BadParameter("it does not have two lines");
    const { body: document, line } = await signedLines("hubbub/1 models\n", head, body);
    if (document["version"] !== 1) throw new BadParameter("it needs a newer version of hubbub");
    if (!line.includes(operator)) throw new BadParameter("it is signed by another operator");
    return new Map(
      Object.entries(table(document["models"])).map(([name, state]) => stateOf(name, state)),
    );
  } catch (error) {
    if (error instanceof NotLoaded) throw error;
    throw new ModelsRefused("it is damaged, altered, or signed by another operator", {
      cause: error,
    });
  }
}

function stateOf(name: string, value: unknown): [string, ModelState] {
  const state: Table = table(value);
  const numbers = (field: string) => listed(state[field] ?? []).map(number);
  const [centre, weights, edges] = [numbers("centre"), numbers("weights"), numbers("edges")];
  const round = number(state["number"]);
  const isState =
    NAME_PATTERN.test(name) &&
    Number.isInteger(round) &&
    round >= 0 &&
    round < MAX_ROUNDS &&
    weights.length > 0 &&
    weights.length % (centre.length + 1) === 0 &&
    weights.every((weight) => Math.abs(weight) <= LARGEST_WEIGHT) &&
    centre.every((number) => number >= 0 && number <= 1) &&
    edges.every((edge, index) => edge >= (edges[index - 1] ?? -Infinity));
  if (!isState) throw new BadParameter("the state of a model is invalid");
  return [name, { number: round, centre, weights, edges }];
}
