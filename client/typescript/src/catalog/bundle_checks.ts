/**
 * Checks of a bundle's fields, the same as of the catalog's builder, so that the device also
 * refuses every promise that the builder refuses. The ranges are in fields.ts.
 */
import { UnknownMetric } from "../errors.js";
import { exact } from "../mechanisms/fraction.js";
import { expAtMost } from "../mechanisms/probability.js";
import { isWhole } from "./definition.js";
import type { Mechanism, Randomizer } from "../mechanisms/randomizer.js";
import { CAPS, DEFINITION, METRIC, PARAMETERS, REAL_PARAMETERS } from "./fields.js";
import type { Figures } from "./bundle.js";
import { isOfVectors, NUMERIC, type Metric } from "./metric.js";
import { SEAL_BYTES, type Kem } from "../transport/sealing.js";
import { listed, number, ownValue, table, text, wholeNumber, type Table } from "./json.js";

/**
 * A rule: a number's limits and whether each is exclusive; a text; a boolean; or one of some words.
 */
export type Rule =
  | readonly [
      kind: string,
      low: number | null,
      high: number | null,
      above?: boolean,
      below?: boolean,
    ]
  | readonly string[]
  | "text"
  | "boolean";

/** Rules by field, with the default of an optional field. */
export type Fields = Readonly<Record<string, readonly [Rule, unknown?]>>;

// Fields that a metric without a crowd must not have.
const OF_CROWDS = [
  ...["central_epsilon", "crowd", "delta", "honest", "max_local_epsilon", "rolling", "dummies"],
  ...["dummies_each", "dummies_scale", "dummies_shift", "dummies_sum_scale", "central_period"],
  "count_epsilon",
];
const CROWD_MECHANISMS = [
  ...["grr", "pairs", "vector.codes", "local_hash", "tree", "wave"],
  ...["mean.one_bit", "mean.piecewise"],
];
const MAX_SEALED = 500_000;
const MAX_REACH = 20_000; // the largest mean of the number of a value's dummies
const MIN_SCALE = 1 / 16;
const MAX_MINIMUM = 1_000_000; // reports and dummies together, the shuffler's limit
const UNITS: Readonly<Record<string, readonly string[]>> = {
  duration: ["us", "ms", "s", "min", "h", "d"],
  size: ["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"],
};
const KINDS: ReadonlySet<unknown> = new Set([
  ...["", "boolean", ...NUMERIC, "set", "vector"],
  ...["funnel", "rate", "activity", "retention"],
]);
const ACTIVITY = ["again in its week", "first in its week", "first in its 28 days"];
const MAX_TEXT = 10_000;
const MOST_LISTS = 16;
const FRAME_BYTES = 16;
const MAX_BATCH_BYTES = 64 << 20;
const DEEPEST = 32;
const LONGEST = 40; // digits of a whole number
const TOKEN = /[{}[\]]|"(?:[^"\\]|\\.)*"(\s*:)?|(-?[0-9][0-9.eE+-]*)/g;
const LONE_SURROGATE = /\p{Surrogate}/u;
// As is_signed_address of fields/rules.py.
const ADDRESS = /^(?:https:\/\/)?[!-.0-9;-~]{1,253}:([0-9]{1,5})$/;
const LAST_PORT = 65_535;
const PEM = /-----BEGIN CERTIFICATE-----\r?\n[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/;
const DIGEST = /^[0-9a-f]{64}$/;
const STREAM = /^([^/]*)((\/v[0-9]{1,6})?(\/[0-9.e+-]{1,16})?|\/find)$/;
const [LAST_ID, LAST_SECOND] = [2 ** 32 - 1, 2 ** 53 - 1];
const FIELD = /^[a-z][a-z0-9_]{0,23}$/;
const CELL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,23}$/;
const ARM = /^[a-z0-9][a-z0-9_-]{0,23}$/;
const [LEAST_ARMS, MOST_ARMS, MOST_WEIGHT] = [2, 10, 10_000];
const LONGEST_PATTERN = 100;
const MAX_BYTES = 1024; // of a value
const NAME_PATTERN = /^[a-z][a-z0-9_.-]{0,63}$/;
// Python's spaces, which do not include U+FEFF.
const SPACES = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;

/**
 * Checks the entry of a metric. pythonEntry: with numbers in Python's spelling.
 *
 * @throws TypeError no builder signs such content.
 */
export function refuseMetric(name: string, entry: Table, pythonEntry: Table): void {
  if (!NAME_PATTERN.test(name)) throw new TypeError("a metric's name is invalid");
  refuseUnfit(entry, METRIC);
  refuseConflicts(entry);
  // How `auto` chose has no effect on a device, and is null where it had one option.
  refuseNull({ ...entry, values: entry["values"] ?? "", choice: "" });
  const parameters = ownValue(PARAMETERS, text(entry["mechanism"]));
  for (const [parameter, spelling] of Object.entries(table(pythonEntry["parameters"]))) {
    const fit = REAL_PARAMETERS.includes(parameter) || isWhole(spelling);
    if (parameters && !(parameters.includes(parameter) && fit))
      throw new TypeError("its mechanism lacks this parameter");
  }
  refuseNoDay(entry["expires"]);
  const { values } = entry;
  if (values !== null) refuseTexts(listed(values));
  refuseTexts(listed(entry["beginnings"] ?? []));
  refuseBreakdown(entry["breakdown"]);
  refuseExperiment(entry, pythonEntry);
  refuseRanges(entry);
  const tiers = ascending(
    listed(entry["tiers"] === undefined ? [] : entry["tiers"]),
    METRIC["epsilon"]?.[0] ?? "text",
  );
  const earlierSizes = ascending(listed(entry["grown"] ?? []), ["integer", 1, 1 << 24]);
  const size = values === null ? 0 : listed(values).length;
  if (
    (tiers.at(-1) ?? 0) >= Number(entry["epsilon"]) ||
    earlierSizes.length > MOST_LISTS ||
    !listed(pythonEntry["grown"] ?? []).every(isWhole) ||
    (entry["kind"] === "rate" && !isWhole(table(pythonEntry["rate"])["most"])) ||
    (earlierSizes.at(-1) ?? -1) >= size
  )
    throw new TypeError("its tiers or lists do not belong to it");
}

/**
 * Checks that noise dummies of parts name one cell each, and are not too many, as noise_conflicts()
 * of client/hubbub/catalog/crowds/noise_dummies.py.
 *
 * @throws TypeError they do not, or they are.
 */
export function refuseNoise(entry: Table, { namedCells = 0 }: Randomizer): void {
  const shift = Number(ownValue(entry, "dummies_shift") ?? 0);
  const isFit = namedCells && 2 * shift * namedCells <= MAX_SEALED;
  if (shift && entry["mechanism"] === "pairs" && !isFit)
    throw new TypeError("dummies of its parts name several cells, or are too many");
}

/**
 * Checks that a batch of a metric fits one message, as refuse_large_batch() of
 * client/hubbub/catalog/metric_checks.py; a crowd may leave in several messages.
 *
 * @throws TypeError it does not fit.
 */
export function refuseLargeBatch(entry: Table, payloadBytes: number, kem: Kem): void {
  const bytes = Number(entry["min_batch"]) * (payloadBytes + SEAL_BYTES[kem] + FRAME_BYTES);
  if (ownValue(entry, "crowd") === undefined && bytes > MAX_BATCH_BYTES)
    throw new TypeError("a minimum batch does not fit one message");
}

/**
 * Checks the content of a bundle besides its metrics.
 *
 * @throws TypeError no builder signs such content.
 */
export function refuseRest(body: Table): void {
  const caps = table(body["caps"] === undefined ? {} : body["caps"]);
  refuseUnfit(caps, CAPS);
  refuseNull(caps);
  const [, port] = ADDRESS.exec(text(body["shuffler"])) ?? [];
  if (!(Number(port) <= LAST_PORT)) throw new TypeError("an address is invalid");
  if (body["roots"] !== null && !PEM.test(text(body["roots"])))
    throw new TypeError("no certificates in PEM");
  refuseUnfit(body, BODY);
  const metrics = Object.values(table(body["metrics"])).map(table);
  const uncovered = (entry: Table) =>
    ownValue(entry, "default") === undefined || ownValue(entry, "crowd") !== undefined;
  if (body["cover"] === true && metrics.some(uncovered))
    throw new TypeError("a covered metric has no default");
  for (const [stream, digest] of Object.entries(table(body["history"]))) {
    const [, name = ""] = STREAM.exec(stream) ?? [];
    if (!NAME_PATTERN.test(name) || !DIGEST.test(text(digest)))
      throw new TypeError("the history is invalid");
  }
  const keys = listed(body["keys"]).map(table);
  for (const key of keys) refuseUnfit(key, KEY);
  const spans = keys.map(({ start, end }) => [Number(start), Number(end)] as const);
  const inOrder = spans.sort(([first], [second]) => first - second);
  const areDisjoint = inOrder.every(
    ([start, end], index) => start < end && start >= (inOrder[index - 1]?.[1] ?? -Infinity),
  );
  if (!areDisjoint || new Set(keys.map(({ id }) => id)).size !== keys.length)
    throw new TypeError("opening keys share an id or an epoch");
}

const BODY: Fields = {
  serial: [["integer", 0, LAST_SECOND], 0],
  development: ["boolean", false],
  cover: ["boolean", false],
};
const KEY: Fields = {
  id: [["integer", 0, LAST_ID]],
  start: [["integer", -LAST_SECOND, LAST_SECOND]],
  end: [["integer", -LAST_SECOND, LAST_SECOND]],
};

/** Checks the promises of retired names. @throws TypeError a name is not retired. */
export function promisedOf(body: Table): ReadonlyMap<string, Figures> {
  const [history, metrics] = [table(body["history"]), table(body["metrics"])];
  return new Map(
    Object.entries(table(body["promised"] ?? {})).map(([name, promise]) => {
      const [digest, epsilon, reports, lifetime, ...central] = listed(promise);
      if (central.length > 1 || Object.hasOwn(metrics, name) || ownValue(history, name) !== digest)
        throw new TypeError("promises are not only for retired names");
      const figures = {
        epsilon: number(epsilon),
        reports: wholeNumber(reports),
        lifetime: number(lifetime),
      };
      return [name, { ...figures, central: central.length ? number(central[0]) : null }];
    }),
  );
}

/** @throws TypeError one of these fields is invalid or missing. */
function refuseUnfit(record: Table, fields: Fields): void {
  for (const [name, [rule, ...defaults]] of Object.entries(fields)) {
    const value = ownValue(record, name);
    const usual = defaults.length && (value === undefined || value === defaults[0]);
    if (usual || fits(rule, value)) continue;
    // An unknown word is of a later version; the other metrics of the bundle still work.
    const isWord = typeof value === "string" && typeof rule === "object";
    throw new (isWord ? UnknownMetric : TypeError)(`${name} has an invalid value; upgrade hubbub`);
  }
}

/** @throws TypeError the value, or one within it, is null. */
function refuseNull(value: unknown): void {
  if (value === null) throw new TypeError("null is not a value");
  if (typeof value === "object") Object.values(value).forEach(refuseNull);
}

/** @throws TypeError an element of the list is not a text of valid length, or occurs twice. */
function refuseTexts(values: readonly unknown[]): void {
  const unfit = (text: unknown) =>
    typeof text !== "string" || !text || new TextEncoder().encode(text).length > MAX_BYTES;
  if (values.some(unfit) || new Set(values).size !== values.length)
    throw new TypeError("a list has a repeated or invalid entry");
}

/**
 * Whether kind, edges, unit and similar fields fit the metric's mechanism, as check_kind() of
 * client/hubbub/catalog/values/value_kind_registry.py.
 */
export function fitsKind(entry: Table, takes: Mechanism["values"] | undefined): boolean {
  const { kind, outside, unit, values, model, beginnings } = entry;
  const isVector = takes === "vectors";
  const isListed = isVector
    ? model === undefined
    : ["categories", "parts", "sets"].includes(takes ?? "");
  const texts = values === null ? [] : listed(values);
  const cut = listed(entry["edges"] ?? []).length > 0;
  return (
    KINDS.has(kind ?? "") &&
    (model === undefined || entry["breakdown"] === undefined) &&
    fitsPast(entry, takes) &&
    (takes === "sets") === (kind === "set") &&
    isVector === isOfVectors(entry) &&
    isListed === (values !== null) &&
    (kind !== "boolean" || String([...texts].sort()) === "false,true") &&
    (cut
      ? NUMERIC.has(kind) && takes === "categories"
      : !NUMERIC.has(kind) || takes === "numbers") &&
    fitsUnit(kind, unit) &&
    (!outside || cut || takes === "numbers") &&
    (!unit || cut || isVector || takes === "numbers") &&
    (entry["other"] !== true ||
      (["", "set"].includes(text(kind ?? "")) && texts.includes("other"))) &&
    (beginnings === undefined || entry["mechanism"] === "tree" || !listed(beginnings).length)
  );
}

/** Whether the fields fit a kind that a device computes from its past, as PastKind.check(). */
function fitsPast(entry: Table, takes: Mechanism["values"] | undefined): boolean {
  const { kind, epoch, rate, breakdown, parameters } = entry;
  const names = entry["values"] === null ? [] : listed(entry["values"]);
  const isOf = (values: readonly string[]) => JSON.stringify(names) === JSON.stringify(values);
  const isInArms =
    breakdown === undefined ||
    (ownValue(entry, "experiment") !== undefined && listed(breakdown).length === 1);
  const isAtOnce = (entry["sampling"] ?? 1) === 1;
  const isAlone =
    entry["reports_per_epoch"] === 1 &&
    entry["default"] === undefined &&
    !entry["discover"] &&
    !entry["report_on"];
  if (rate !== undefined && kind !== "rate") return false;
  if (kind === "rate") {
    const { of, per, most: maxPerEpoch, ...extraFields } = table(rate);
    return (
      isAlone &&
      isInArms &&
      takes === "vectors" &&
      !Object.keys(extraFields).length &&
      fits("text", of) &&
      fits("text", per) &&
      of !== per &&
      fits(["integer", 1, 1_000_000], maxPerEpoch) &&
      isOf([text(of), text(per)]) &&
      table(parameters)["max_length"] === Math.SQRT2 * Number(maxPerEpoch)
    );
  }
  const isListed = isAlone && takes === "categories";
  if (kind === "funnel") return isListed && isInArms && names.length >= 2 && names.length <= 20;
  if (kind === "activity") return isListed && isAtOnce && epoch === "day" && isOf(ACTIVITY);
  if (kind !== "retention") return true;
  const weeks = names.length - 2;
  const isAny = weeks >= 1 && weeks <= 52;
  return (
    isListed &&
    isAtOnce &&
    epoch === "week" &&
    isAny &&
    isOf([...names.slice(0, -1).map((_, week) => `week ${week}`), "later"])
  );
}

function fitsUnit(kind: unknown, unit: unknown): boolean {
  return ownValue(UNITS, String(kind))?.includes(String(unit)) ?? true;
}

/** @throws TypeError the metric has no parts, or a range is invalid. */
function refuseRanges({ ranges = {}, mechanism }: Table): void {
  for (const range of Object.values(table(ranges)).map(table)) {
    const { kind = "number", unit = "", outside = "" } = range;
    const isRange =
      mechanism === "pairs" &&
      Object.keys(range).every((field) => Object.hasOwn(DEFINITION.ranges, field)) &&
      NUMERIC.has(kind) &&
      fitsUnit(kind, unit) &&
      (unit === "" || fits("text", unit)) &&
      ["", "clamp", "refuse"].includes(String(outside));
    if (!isRange) throw new TypeError("its range does not fit its mechanism");
  }
}

/** @throws TypeError it is not a list of fields, each with values and their patterns. */
function refuseBreakdown(value: unknown): void {
  if (value === undefined) return;
  const fields = listed(value).map(listed);
  const isFit = fields.every(([field, values, ...extraFields]) => {
    const groups = listed(values).map(listed);
    const areNamed = groups.every(([name, patterns, ...extraItems]) => {
      const texts = listed(patterns);
      return (
        !extraFields.length &&
        !extraItems.length &&
        CELL.test(text(name)) &&
        texts.length &&
        texts.every((pattern) => isPattern(text(pattern)))
      );
    });
    return (
      FIELD.test(text(field)) && groups.length && areNamed && isOnce(groups.map(([name]) => name))
    );
  });
  if (!isFit || !fields.length || !isOnce(fields.map(([field]) => field)))
    throw new TypeError("its breakdown is invalid");
}

/** @throws TypeError it is not an experiment, or the breakdown does not separate its arms. */
function refuseExperiment(entry: Table, pythonEntry: Table): void {
  if (entry["experiment"] === undefined) return;
  const { name, arms: pairs, ...extraFields } = table(entry["experiment"]);
  const arms = listed(pairs).map(listed);
  const names = arms.map(([arm]) => text(arm));
  const weights = arms.map(([, weight]) => wholeNumber(weight));
  const rules = listed(entry["breakdown"]).map(listed);
  const values = rules.find(([field]) => field === name)?.[1];
  const fit =
    !Object.keys(extraFields).length &&
    FIELD.test(text(name)) &&
    arms.every((pair) => pair.length === 2) &&
    listed(table(pythonEntry["experiment"])["arms"]).every((pair) => isWhole(listed(pair)[1])) &&
    names.every((arm) => ARM.test(arm)) &&
    isOnce(names) &&
    names.length >= LEAST_ARMS &&
    names.length <= MOST_ARMS &&
    weights.every((weight) => weight >= 0 && weight <= MOST_WEIGHT) &&
    weights.some((weight) => weight > 0) &&
    JSON.stringify(values) === JSON.stringify(names.map((arm) => [arm, [arm]]));
  if (!fit) throw new TypeError("an experiment is invalid");
}

/**
 * Checks the experiments of a bundle's metrics together, as clashes() of
 * client/hubbub/catalog/experiments.py.
 *
 * @throws TypeError two experiments contradict each other.
 */
export function refuseExperiments(metrics: ReadonlyMap<string, Metric>): void {
  const definitions = new Map<string, string>();
  for (const { experiment } of metrics.values()) {
    if (!experiment) continue;
    const { name, definition } = experiment;
    if ((definitions.get(name) ?? definition) !== definition)
      throw new TypeError("an experiment has two definitions");
    definitions.set(name, definition);
  }
  for (const { name, breakdown, experiment } of metrics.values()) {
    const isTaken = breakdown?.fields.some(
      (field) => field !== experiment?.name && definitions.has(field),
    );
    const isArm = [...definitions].some(([experiment, definition]) =>
      definition.split(",").some((arm) => name === `${experiment}.${arm.split("=")[0] ?? ""}`),
    );
    if (isTaken || isArm) throw new TypeError("a metric has the name or the breakdown of an arm");
  }
}

function isPattern(pattern: string): boolean {
  return !SPACES.test(pattern) && Array.from(pattern).length <= LONGEST_PATTERN;
}

function isOnce(items: readonly unknown[]): boolean {
  return new Set(items).size === items.length;
}

/** @throws TypeError it is not a day of the calendar, or it is the last possible day. */
export function refuseNoDay(day: unknown): void {
  const moment = typeof day === "string" ? Date.parse(`${day}T00:00:00Z`) : NaN;
  const isoDay = Number.isFinite(moment) && new Date(moment).toISOString().slice(0, 10);
  if (!isoDay || isoDay !== day || day === "9999-12-31" || day.startsWith("0000"))
    throw new TypeError("a date does not exist");
}

/** The numbers of a list, which must ascend and fit the rule. @throws TypeError they do not. */
function ascending(value: readonly unknown[], rule: Rule): readonly number[] {
  const numbers = value as readonly number[];
  const fit = numbers.every(
    (number, index) => fits(rule, number) && !(number <= (numbers[index - 1] ?? -1)),
  );
  if (!fit) throw new TypeError("a list does not ascend");
  return numbers;
}

/**
 * Refuses JSON that parsers read differently, as read_json of client/hubbub/bundles/encoding.py:
 * repeated names, infinite numbers, lone surrogates, great depth.
 */
export function refuseAmbiguous(line: Uint8Array): void {
  const json = new TextDecoder().decode(line);
  const open: (Set<string> | null)[] = [];
  for (const [token, colon, digits] of json.matchAll(TOKEN)) {
    if (token === "}" || token === "]") {
      open.pop();
      continue;
    }
    const names = open.at(-1);
    const name = colon && names ? (JSON.parse(token.slice(0, -colon.length)) as string) : null;
    const twice = name !== null && names?.has(name);
    const endless = digits !== undefined && !isFiniteNumber(digits);
    const halved =
      token.startsWith('"') && LONE_SURROGATE.test(name ?? (JSON.parse(token) as string));
    if (twice || endless || halved || open.length > DEEPEST)
      throw new TypeError("its JSON has more than one meaning");
    if (name !== null) names?.add(name);
    if (token === "{") open.push(new Set());
    if (token === "[") open.push(null);
  }
}

function isFiniteNumber(digits: string): boolean {
  return Number.isFinite(Number(digits)) && (/[.eE]/.test(digits) || digits.length <= LONGEST);
}

function fits(rule: Rule, value: unknown): boolean {
  if (rule === "boolean") return typeof value === "boolean";
  if (rule === "text")
    return typeof value === "string" && !SPACES.test(value) && Array.from(value).length <= MAX_TEXT;
  const [kind, low, high, above, below] = rule;
  if (kind !== "integer" && kind !== "number") return rule.includes(value as never);
  if (typeof value !== "number" || !Number.isFinite(value)) return false;
  if (kind === "integer" && !Number.isSafeInteger(value)) return false;
  const [min, max] = [Number(low ?? -Infinity), Number(high ?? Infinity)];
  return (above ? value > min : value >= min) && (below ? value < max : value <= max);
}

/**
 * Checks the fields of a metric against each other, as limits_and_budgets.py and
 * central_conflicts.py.
 *
 * @throws TypeError they contradict each other.
 */
function refuseConflicts(entry: Table): void {
  const isSet = (name: string) => {
    const [, usual = null] = METRIC[name] ?? [];
    return (ownValue(entry, name) ?? usual) !== usual;
  };
  const figure = (name: string) =>
    (ownValue(entry, name) ?? METRIC[name]?.[1] ?? null) as number | null;
  const [crowd, central] = [figure("crowd"), figure("central_epsilon")];
  const [epsilon, lifetimeCentral] = [
    Number(figure("epsilon")),
    figure("lifetime_central_epsilon"),
  ];
  const hasNoPromise = crowd === null || central === null;
  const tiers = ownValue(entry, "tiers") as readonly unknown[] | undefined;
  const mechanism = String(entry["mechanism"]);
  const isListed = mechanism === "grr";
  const kinds = [isSet("dummies"), isSet("dummies_each"), isSet("dummies_scale")];
  const several = kinds.filter((kind) => kind).length;
  const isCountNoised = isSet("count_epsilon");
  const hidden = isCountNoised
    ? mostDummies(Number(figure("count_epsilon")), Number(figure("delta")))
    : 0;
  const noise = ["dummies_scale", "dummies_shift", "dummies_sum_scale"].map((name) =>
    Number(figure(name)),
  );
  const ofEpochs = kinds[1] || kinds[2] || isCountNoised;
  const { steps = 1 } = table(entry["parameters"]);
  const size = entry["values"] === null ? 1 + Number(steps) : listed(entry["values"]).length;
  // As central_conflicts(), noise_conflicts() and count_conflicts().
  const fit = hasNoPromise
    ? lifetimeCentral === null &&
      !OF_CROWDS.some(isSet) &&
      !(mechanism === "pairs" && Number(table(entry["parameters"])["ways"] ?? 2) > 2)
    : CROWD_MECHANISMS.includes(mechanism) &&
      (isListed ||
        !(several || isCountNoised) ||
        (kinds[2] && /^(mean|pairs$)/.test(mechanism) && !isCountNoised)) &&
      several <= 1 &&
      !(ofEpochs && isSet("rolling")) &&
      !((kinds[2] || isCountNoised) && ownValue(entry, "breakdown")) &&
      !(isCountNoised && kinds[1]) &&
      crowd + hidden <= MAX_MINIMUM &&
      !(isSet("central_period") && isSet("report_on")) &&
      isSet("dummies_scale") === isSet("dummies_shift") &&
      (!isSet("dummies_sum_scale") || (kinds[2] && mechanism === "mean.piecewise")) &&
      sealedDummies(size, noise) <= MAX_SEALED &&
      figure("min_batch") === crowd &&
      figure("reports_per_epoch") === 1 &&
      !tiers?.length &&
      ownValue(entry, "release") === undefined &&
      epsilon <= Number(figure("max_local_epsilon")) &&
      central <= (lifetimeCentral ?? Infinity);
  const often =
    figure("report_on") !== null && isSet("report_on") && figure("reports_per_epoch") !== 1;
  // As cover_conflicts(): otherwise the number of reports would reveal whether a device had a
  // value.
  const hasDefault = ownValue(entry, "default") !== undefined;
  const covers =
    !hasDefault || (figure("reports_per_epoch") === 1 && !ownValue(entry, "breakdown"));
  const isPlain = ownValue(entry, "values") !== null && ownValue(entry, "edges") === undefined;
  const isCut = !isPlain || !NUMERIC.has(String(ownValue(entry, "kind")));
  // As check_discovery(): devices that do not look for strings must count an unlisted value as
  // another one.
  const isFound =
    !ownValue(entry, "discover") || ownValue(entry, "values") === null || entry["other"] === true;
  if (!isFound) throw new UnknownMetric("it must count unlisted values as other; upgrade hubbub");
  if (!fit || often || !covers || !isCut || Number(figure("lifetime_epsilon")) < epsilon)
    throw new TypeError("its fields contradict each other");
}

/**
 * How many noise dummies the shuffler seals, by scale, shift and scale of their sum; infinite for
 * too small a scale: as ValueNoise of client/hubbub/sealing/dummy_laws.py.
 */
function sealedDummies(values: number, [scale = 0, shift = 0, sumScale = 0]: number[]): number {
  if ([scale, sumScale].some((noiseScale) => noiseScale && noiseScale < MIN_SCALE)) return Infinity;
  if (!sumScale) return 2 * shift * values;
  let [total, squares] = [1, 0];
  for (let distance = 1; distance <= shift; distance += 1) {
    const weight = 2 * Math.exp(-distance / scale);
    total += weight;
    squares += weight * distance * distance;
  }
  const spread = 8 * Math.sqrt(((squares / total) * values) / 3);
  const sumReach = Math.min(Math.ceil(48 * sumScale), MAX_REACH);
  const ends = Math.ceil(Math.min(spread, (shift * values) / 2) + sumReach / (values - 1)) + 2;
  return values * (2 * shift + 1) + 4 * ends;
}

/**
 * The maximum number of dummies that hide the number of reports, except with probability delta: as
 * CountNoise.least() of client/hubbub/sealing/dummy_laws.py.
 */
function mostDummies(epsilon: number, delta: number): number {
  const [odds, maxDelta] = [expAtMost(epsilon), exact(delta)];
  const times = (odds.numerator << 32n) / odds.denominator;
  const end = 1n << 32n;
  let [weight, side] = [end, 0n];
  for (let reach = 1; ; reach += 1) {
    side += weight;
    weight = (weight * times) >> 32n;
    if (end * maxDelta.denominator <= maxDelta.numerator * (2n * side + weight)) return 2 * reach;
  }
}
