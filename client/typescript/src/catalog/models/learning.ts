/**
 * A metric that is a model: its features, its devices and its rounds. As model_metric.py
 * and learning.py of client/hubbub/catalog/models.
 */
import { UnknownMetric, ValueOutOfDomain } from "../../errors.js";
import { pick, type BitSource } from "../../mechanisms/random_bits.js";
import { exact, nearest } from "../../mechanisms/fraction.js";
import { gradient, place, toJudge, type ModelKind } from "../../mechanisms/gradient.js";
import { grr, index } from "../../mechanisms/randomized_response.js";
import { unpacked } from "../../mechanisms/packing.js";
import { purpose } from "../../mechanisms/permanent.js";
import { atMost } from "../../mechanisms/probability.js";
import type { Randomizer } from "../../mechanisms/randomizer.js";
import { vectorCodes } from "../../mechanisms/vector_codes.js";
import { epochAt } from "../epochs.js";
import { listed, number, table, text, type Table } from "../json.js";
import type { Example, Model } from "../metric.js";
import { withSubject } from "../values.js";
import { refuseNoDay } from "../bundle_checks.js";
import { featureOf, type Feature } from "./features.js";
import { plain } from "../plain_value.js";
import { labelOf } from "./labels.js";

const MINUTE = "minute";
// The number of epochs between rounds: the reports of a round have arrived when the next round
// begins.
const APART = 2;
// The number of devices, and how many of them report where columns lie.
const [CENTRE, OF] = [100, 1000];
// The number of bins of scores, and the largest epsilon for it.
const BINS = [
  [1.5, 4],
  [3, 6],
  [5, 8],
  [Infinity, 12],
] as const;
const [FEWEST_ROUNDS, MOST_ROUNDS] = [3, 64];
const [LEAST_SHARE, LARGEST_SHARE] = [0.01, 0.5];
// Moments in the format of Python's isoformat().
const CLOCK =
  /^T([01]\d|2[0-3])(:[0-5]\d){2}(\.(?!0{6})\d{6})?(?!-00:00)[+-]([01]\d|2[0-3]):[0-5]\d$/;
const DAY_LETTERS = 10;
const KINDS: ReadonlySet<string> = new Set(["logistic", "linear", "ridge", "softmax"]);
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...["kind", "features", "begins", "label", "positive", "negative", "classes", "range"],
  ...["rounds", "rounds_each", "held_out", "penalty"],
]);

/** The model of a bundle's entry. @throws UnknownMetric the model is of a later version. */
export function modelOf(name: string, entry: Table): Model {
  try {
    return modelFrom(name, entry);
  } catch (error) {
    // An unknown field is of a later version; the other metrics of the bundle still work.
    if (!(error instanceof TypeError)) throw error;
    throw new UnknownMetric(`model "${name}" is of an unknown kind; upgrade hubbub`);
  }
}

function modelFrom(name: string, entry: Table): Model {
  const model = table(entry["model"]);
  const kind = text(model["kind"]);
  const unknownField = Object.keys(model).find((field) => !KNOWN_FIELDS.has(field));
  if (unknownField !== undefined || !KINDS.has(kind)) {
    throw new UnknownMetric(`model "${name}" is of an unknown kind; upgrade hubbub`);
  }
  const features = listed(model["features"]).map(featureOf);
  const [low, high] = listed(model["range"] ?? [0, 1]).map(number);
  const labels = {
    kind: kind as ModelKind,
    classes: listed(model["classes"] ?? []).map(text),
    positive: text(model["positive"] ?? ""),
    negative: text(model["negative"] ?? ""),
    range: [low ?? 0, high ?? 1] as const,
  };
  const columns = features.reduce((sum, feature) => sum + feature.columns, 0);
  const weights = Math.max(labels.classes.length - 1, 1) * (columns + 1);
  const epsilon = number(entry["epsilon"]);
  const rounds = number(model["rounds"] ?? 8);
  const roundsEach = number(model["rounds_each"] ?? 0);
  const heldOut = number(model["held_out"] ?? 0);
  const lastRound = rounds + Number(heldOut > 0);
  const length = text(entry["epoch"]);
  const parameters = Object.fromEntries(
    Object.entries(table(entry["parameters"])).map(([key, parameter]) => [key, number(parameter)]),
  );
  const isShare = heldOut >= LEAST_SHARE && heldOut <= LARGEST_SHARE;
  const fit =
    isRounds(rounds, FEWEST_ROUNDS) &&
    (model["rounds_each"] === undefined || isRounds(roundsEach, 1)) &&
    (model["held_out"] === undefined || isShare) &&
    ["positive", "negative"].every((label) => model[label] === undefined || model[label]);
  const limited =
    entry["reports_per_epoch"] === 1 &&
    entry["lifetime_epsilon"] === (roundsEach || 1) * epsilon &&
    (entry["lifetime_central_epsilon"] ?? null) === (entry["central_epsilon"] ?? null);
  const fits =
    entry["mechanism"] === "vector.codes" &&
    parameters["dimensions"] === weights &&
    !entry["crowd"] === !roundsEach &&
    fit;
  if (!limited || !fits) {
    throw new UnknownMetric(`model "${name}" has invalid codes or limits; upgrade hubbub`);
  }
  const codesOf = (round: number): Randomizer => {
    // A crowd accounts for all rounds alike, so a report of columns ends with zeros.
    const dimensions = round || roundsEach ? weights : columns + 1;
    const settings = { epsilon, categories: 0, sizes: [], seed: `${name}/${round}` };
    return vectorCodes({ ...settings, parameters: { ...parameters, dimensions } });
  };
  const bins = BINS.find(([upto]) => epsilon <= upto)?.[1] ?? 0;
  const judging = grr({ epsilon, categories: 2 * bins, sizes: [], parameters: {} });
  const size = number(parameters["words"]) * number(parameters["books"]);
  const firstEpoch = epochAt(momentOf(text(model["begins"])), length);
  return {
    columns,
    weights,
    // PRIVACY: a device sends only one of the two kinds of report.
    judgingLoss: heldOut ? judging.privacyLoss : 0,
    round(epoch, memo) {
      const since = epoch - firstEpoch;
      // In development the rounds repeat.
      const round = length === MINUTE ? since % (lastRound + 1) : since / APART;
      if (since < 0 || !Number.isInteger(round) || round > lastRound) return null;
      const coins = memo.coins(purpose("round"));
      return turns(coins, { rounds, roundsEach, lastRound, judges: nearest(heldOut * OF) }).has(
        round,
      )
        ? round
        : null;
    },
    example(person, label) {
      return withSubject(`model "${name}"`, () =>
        exampleOf(features, person, () => labelOf(labels, plain(label))),
      );
    },
    teller(round, { columns: scaled, label }, state) {
      if (!round) {
        const codes = codesOf(0);
        const vector = place(scaled);
        const padding = (roundsEach ? weights : columns + 1) - vector.length;
        const filled = [...vector, ...Array.from({ length: padding }, () => 0)];
        return (coins) => codes.randomize(filled, coins);
      }
      // PRIVACY: only the state of the device's round. An older or newer state depends on other
      // people.
      if (state?.number !== round - 1) return null;
      const example = { ...{ kind: labels.kind, columns: scaled, label }, ...state };
      if (round <= rounds) {
        const codes = codesOf(round);
        const vector = gradient(example);
        return (coins) => codes.randomize(vector, coins);
      }
      if (state.edges.length !== bins - 1) return null;
      const [score, rightChance] = toJudge(example);
      const bin = state.edges.filter((edge) => edge <= score).length;
      return (coins) => {
        // A label between 0 and 1 is reported as 1 with that probability.
        const rightBit = Number(coins.chance(atMost(exact(rightChance))));
        // The report has the length of a gradient, so that nobody on the way can distinguish the
        // two.
        return index(Number(unpacked(judging.randomize(2 * bin + rightBit, coins))), size);
      };
    },
  };
}

/** The rounds in which a device takes part. PRIVACY: they depend only on the secret. */
function turns(
  coins: BitSource,
  counts: { rounds: number; roundsEach: number; lastRound: number; judges: number },
): ReadonlySet<number> {
  const ticket = pick(coins, OF);
  if (ticket >= CENTRE && ticket < CENTRE + counts.judges) return new Set([counts.lastRound]);
  if (!counts.roundsEach) return new Set([ticket < CENTRE ? 0 : 1 + pick(coins, counts.rounds)]);
  const rounds = Array.from({ length: counts.rounds + 1 }, (_, round) => round);
  return new Set(
    Array.from(
      { length: counts.roundsEach },
      () => rounds.splice(pick(coins, rounds.length), 1)[0] ?? 0,
    ),
  );
}

function exampleOf(
  features: readonly Feature[],
  person: unknown,
  labelled: () => readonly [label: number, clipped: boolean],
): Example {
  const columns = valuesOf(features, person).map((value, index) => features[index]?.coded(value));
  const [label, outside] = labelled();
  return {
    columns: columns.flatMap((column) => column?.[0] ?? []),
    label,
    clipped: Number(outside) + columns.filter((column) => column?.[1]).length,
  };
}

/** One value for each feature, in the order of the features. */
function valuesOf(features: readonly Feature[], person: unknown): readonly unknown[] {
  const names = features.map(({ name }) => name);
  const isList = Array.isArray(person) || (ArrayBuffer.isView(person) && Symbol.iterator in person);
  if (isList) {
    const values = [...(person as Iterable<unknown>)];
    if (values.length === names.length) return values;
    throw new ValueOutOfDomain(
      `${values.length} features were passed, but the model has ${names.length}: ${names.join(", ")}`,
    );
  }
  if (typeof person !== "object" || person === null) {
    throw new ValueOutOfDomain("features must be an object by name or an array");
  }
  const columns =
    person instanceof Map ? person : new Map<unknown, unknown>(Object.entries(person));
  const missingNames = names.filter((name) => !columns.has(name));
  // PRIVACY: an unknown name may be a text that a person wrote, so the error gives only the number
  // of unknown names.
  const unknownCount = [...columns.keys()].filter((name) => !names.includes(name as string)).length;
  if (missingNames.length || unknownCount) {
    throw new ValueOutOfDomain(
      `features are ${names.join(", ")}; missing: ${missingNames.join(", ") || "none"}; ` +
        `unknown: ${unknownCount}`,
    );
  }
  return names.map((name) => columns.get(name) as unknown);
}

/** A moment, or a day's first second, in seconds since 1970. */
function isRounds(number: number, fewest: number): boolean {
  return Number.isInteger(number) && number >= fewest && number <= MOST_ROUNDS;
}

function momentOf(begins: string): number {
  const [day, clock] = [begins.slice(0, DAY_LETTERS), begins.slice(DAY_LETTERS)];
  refuseNoDay(day);
  if (clock && !CLOCK.test(clock)) throw new TypeError("begins is not a time");
  return Date.parse(begins.replace(/\.\d+/, "")) / 1000;
}
