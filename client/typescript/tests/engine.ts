/** What tests ask of any engine, a browser's or Node's: seals, draws of coins, and known answers. */
import { fromText, toText } from "../src/catalog/encoding.js";
import { SystemBits } from "../src/mechanisms/random_bits.js";
import type { Randomizer } from "../src/mechanisms/randomizer.js";
import { gradient, toJudge, type LearnedExample } from "../src/mechanisms/gradient.js";
import { KeyedBits } from "../src/mechanisms/keyed.js";
import { seal, sealInfo } from "../src/transport/sealing.js";
import { MECHANISMS } from "../src/vectors.js";

function grr(epsilon: number, categories: number): Randomizer {
  const mechanism = MECHANISMS.get("grr");
  if (!mechanism) throw new Error("there is no grr");
  return mechanism.build({ epsilon, categories, sizes: [], parameters: {} });
}

/** So many reports of one value, each randomized and sealed to a key. what: "report" or "filler". */
export async function sealed(
  { epsilon, categories, value }: { epsilon: number; categories: number; value: number },
  { key, stream, epoch, what }: { key: string; stream: string; epoch: number; what: string },
  count: number,
): Promise<string[]> {
  const [randomizer, coins] = [grr(epsilon, categories), new SystemBits()];
  const reports: string[] = [];
  for (let time = 0; time < count; time += 1) {
    const payload = randomizer.randomize(value, coins);
    reports.push(toText(await seal(payload, fromText(key), sealInfo(stream, epoch, what))));
  }
  return reports;
}

/** How often each payload came in so many draws of one value. */
export function drawn(
  { epsilon, categories, value }: { epsilon: number; categories: number; value: number },
  count: number,
): number[] {
  const [randomizer, coins] = [grr(epsilon, categories), new SystemBits()];
  const counts = Array.from({ length: categories }, () => 0);
  for (let time = 0; time < count; time += 1) {
    const [place = -1] = randomizer.randomize(value, coins);
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return counts;
}

/** Payloads of vectors by the coins of a key, in base64: their order hangs on floats. */
export function randomized(
  { seed, ...parameters }: Record<string, number> & { seed?: string },
  key: string,
  values: readonly (readonly number[])[],
): string[] {
  const { epsilon = NaN, ...rest } = parameters;
  const settings = { epsilon, categories: 0, sizes: [], parameters: rest };
  const codes = MECHANISMS.get("vector.codes")?.build(
    seed === undefined ? settings : { ...settings, seed },
  );
  const coins = new KeyedBits(fromText(key));
  return values.map((value) => toText(codes?.randomize(value, coins) ?? new Uint8Array()));
}

/** What people tell models of themselves before it is randomized: a gradient, and who judges. */
export function taught(people: readonly LearnedExample[]): unknown[] {
  return people.map((person) => [gradient(person), toJudge(person)]);
}
