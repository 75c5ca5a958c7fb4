/** Checks the options of an app when it opens a client, since JavaScript has no compiler. */
import type { Bundle } from "../catalog/bundle.js";
import { BadParameter } from "../errors.js";
import type { Options } from "./client.js";
import type { Diagnostics } from "./diagnostics.js";
import { meant } from "./value_hints.js";

/** Allowed types by an option's name: as `typeof` names them, or "null". */
export type Allowed = Readonly<Record<string, string>>;

const LONGEST_HOLD_SECONDS = 86_400;
const YEAR_9999_SECONDS = 253_402_300_800;
const SHARED: Allowed = {
  ...{
    holdSeconds: "number or null",
    strict: "boolean",
    local: "boolean",
    maxEpsilon: "number",
    public: "object",
  },
  ...{ onDrop: "function", now: "function", coins: "object", ask: "function" },
  ...{ operatorNamed: "boolean", operator: "string", shuffler: "string", relay: "string" },
  account: "string or function",
};

/**
 * The options, after checking that each is known and has its type. required: this platform's
 * required options. optional: its other options.
 *
 * @throws BadParameter an option is not; the message names it and never shows its value.
 */
export function checked<T>(options: T, required: Allowed, optional: Allowed = {}): T {
  const entries = new Map<string, unknown>(Object.entries(Object(options) as object));
  const allowed = new Map(Object.entries({ ...SHARED, ...required, ...optional }));
  for (const name of new Set([...Object.keys(required), ...entries.keys()])) {
    const [value, types] = [entries.get(name), allowed.get(name)];
    const type = value === null ? "null" : typeof value;
    if (!types) {
      const names = [...allowed.keys()].sort();
      const remedy = `there are ${names.join(", ")}${meant(names, name)}`;
      throw new BadParameter(`open() has no option ${name}; ${remedy}`);
    }
    if (!types.includes(type) && (value !== undefined || name in required)) {
      throw new BadParameter(`open(): ${name} is ${type}; give ${types}`);
    }
  }
  const bundle = entries.get("bundle");
  if (typeof bundle === "object" && !(bundle instanceof URL || bundle instanceof Uint8Array)) {
    throw new BadParameter(`open(): bundle is an object; give ${required["bundle"]}`);
  }
  return options;
}

/**
 * Checks the options of a client for its bundle.
 *
 * @throws BadParameter an option is out of range; strict, and the bundle's metrics need a public
 * value that is missing. If not strict, the client warns.
 */
export function refuseUnfit(options: Options, bundle: Bundle, diagnostics: Diagnostics): void {
  const { maxEpsilon = Infinity, holdSeconds, now, public: publicValues = {} } = options;
  const moment: unknown = now?.() ?? 0;
  if (!(typeof moment === "number" && moment < YEAR_9999_SECONDS)) {
    throw new BadParameter("now must return seconds since 1970, as () => Date.now() / 1000");
  }
  refuseOutside("maxEpsilon", maxEpsilon, Infinity);
  refuseOutside("holdSeconds", holdSeconds ?? 0, LONGEST_HOLD_SECONDS);
  const fields = [...bundle.metrics.values()].flatMap(({ breakdown, experiment }) =>
    (breakdown?.fields ?? []).filter((field) => field !== experiment?.name),
  );
  const missingField = fields.find((field) => !Object.hasOwn(publicValues, field));
  if (!missingField) return;
  const remedy = `metrics need it: pass public: { ${missingField}: ... }`;
  if (options.strict ?? bundle.development) throw new BadParameter(remedy);
  diagnostics.warnOnce("public", remedy);
}

function refuseOutside(name: string, value: number, max: number): void {
  if (!(value >= 0 && value <= max)) {
    throw new BadParameter(`${name} ${value} is outside [0, ${max}]`);
  }
}
