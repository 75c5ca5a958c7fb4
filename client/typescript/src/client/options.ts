/** Checks the options of an app when it opens a client, since JavaScript has no compiler. */
import type { Bundle } from "../catalog/bundle.js";
import { OPERATORS } from "../catalog/fields.js";
import { BadParameter, BundleRefused, HubbubError } from "../errors.js";
import type { Options } from "./client.js";
import type { Diagnostics } from "./diagnostics.js";
import { meant } from "./value_hints.js";

/** Allowed types by an option's name: as `typeof` names them, or "null". */
export type OptionTypes = Readonly<Record<string, string>>;

const MAX_SHOWN = 256; // a longer text is not shown as the name of a bundle
const LONGEST_HOLD_SECONDS = 86_400;
const YEAR_9999_SECONDS = 253_402_300_800;
const SHARED_OPTIONS: OptionTypes = {
  ...{
    holdSeconds: "number or null",
    strict: "boolean",
    local: "boolean",
    maxEpsilon: "number",
    public: "object",
  },
  ...{ onDrop: "function", operator: "string", shuffler: "string", relay: "string" },
  account: "string or function",
};
/** For tests and between modules; errors do not list them. */
const INTERNAL: OptionTypes = {
  ...{ now: "function", coins: "object", ask: "function", operatorNamed: "boolean" },
};
/** The arguments of other calls. */
const ARGUMENTS: OptionTypes = {
  timeoutSeconds: "number",
  forget: "boolean",
  maxLocal: "number or null",
};
const KEY = /^[A-Za-z0-9+/]{43}=$/;
const TIMEOUT_SECONDS = 10;

/**
 * The options, after checking that each is known and has its type. required: this platform's
 * required options. optional: its other options.
 *
 * @throws BadParameter an option is not; the message names it and never shows its value.
 */
export function checked<T>(options: T, required: OptionTypes, optional: OptionTypes = {}): T {
  const entries = new Map<string, unknown>(Object.entries(Object(options) as object));
  const listed = { ...SHARED_OPTIONS, ...required, ...optional };
  const optionTypes = new Map(Object.entries({ ...listed, ...INTERNAL }));
  for (const name of new Set([...Object.keys(required), ...entries.keys()])) {
    const [value, types] = [entries.get(name), optionTypes.get(name)];
    if (!types) {
      const names = Object.keys(listed).sort();
      const remedy = `there are ${names.join(", ")}${meant(names, name)}`;
      throw new BadParameter(`open() has no option ${name}; ${remedy}`);
    }
    if (value !== undefined || name in required) refuseOtherType("open()", name, value, types);
  }
  const operator = entries.get("operator");
  if (typeof operator === "string" && !KEY.test(operator)) {
    throw new BadParameter("open(): operator is not a public key of 32 bytes; give it in base64");
  }
  const bundle = entries.get("bundle");
  if (typeof bundle === "object" && !(bundle instanceof URL || bundle instanceof Uint8Array)) {
    throw new BadParameter(`open(): bundle is an object; give ${required["bundle"]}`);
  }
  return options;
}

/**
 * Checks the options of a call that has one.
 *
 * @throws BadParameter they are no object, have another option, or `name` is of another type.
 */
export function refuseOptions(call: string, name: string, options: unknown): void {
  const entries = Object.entries(typeof options === "object" ? { ...options } : { options });
  for (const [option, value] of entries) {
    if (option !== name && value !== undefined)
      throw new BadParameter(`${call}: give options as { ${name}: ... }`);
    refuseType(call, name, value);
  }
}

function refuseType(call: string, name: string, value: unknown): void {
  if (value !== undefined) refuseOtherType(call, name, value, ARGUMENTS[name] ?? "");
}

/**
 * The timeout of a call; if it is no number, 10 seconds, with a warning. @throws BadParameter
 * strict.
 */
export function secondsOf(
  call: string,
  timeoutSeconds: number,
  isStrict: boolean,
  diagnostics: Diagnostics,
): number {
  try {
    refuseType(call, "timeoutSeconds", timeoutSeconds);
    return timeoutSeconds;
  } catch (error) {
    if (isStrict) throw error;
    diagnostics.warnOnce("timeout", (error as Error).message);
    return TIMEOUT_SECONDS;
  }
}

function refuseOtherType(call: string, name: string, value: unknown, types: string): void {
  const type = value === null ? "null" : typeof value;
  if (!types.includes(type)) throw new BadParameter(`${call}: ${name} is ${type}; give ${types}`);
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
  for (const [field, value] of Object.entries(publicValues)) {
    refuseOtherType("public", field, value, 'string or function, as { os: "linux" }');
  }
  const isStrict = options.strict ?? bundle.development;
  const refuse = (subject: string, problem: string) => {
    if (isStrict) throw new BadParameter(problem);
    diagnostics.warnOnce(subject, problem);
  };
  if ("account" in options && options.account !== undefined && bundle.line.length && !bundle.tokens)
    refuse("account", "account is given, but the bundle's reports need no tokens; leave it out");
  const entries = [...bundle.metrics.values()].map(({ entry }) => entry);
  if (entries.some((entry) => OPERATORS.some((field) => field in entry)))
    refuse("operator", "bundle is the operator's, for the aggregator; ship app.hubbub");
  const fields = [...bundle.metrics.values()].flatMap(({ breakdown, experiment }) =>
    (breakdown?.fields ?? []).filter((field) => field !== experiment?.name),
  );
  const missingField = fields.find((field) => !Object.hasOwn(publicValues, field));
  if (missingField) refuse("public", `metrics need it: pass public: { ${missingField}: ... }`);
}

function refuseOutside(name: string, value: number, max: number): void {
  if (!(value >= 0 && value <= max)) {
    throw new BadParameter(`${name} ${value} is outside [0, ${max}]`);
  }
}

/** The text with no user, password, query or fragment in its addresses. */
function withoutSecrets(text: string): string {
  return text.replace(/\/\/[^/\s]*@/g, "//").replace(/[?#]\S+/g, "");
}

/** The environment does not deliver the bundle: the network, the server or the disk. */
export class BundleUnavailable extends BundleRefused {}

/** What `opened` resolves to. Of a refused bundle, the error names the file or address. */
export async function named<T>(
  bundle: string | URL | Uint8Array,
  opened: () => Promise<T>,
): Promise<T> {
  try {
    return await opened();
  } catch (error) {
    const isRefused = error instanceof BundleRefused;
    if (error instanceof HubbubError && !isRefused) throw error;
    // The argument, which a browser's message may quote, may be the whole text of a bundle.
    const { message, cause } = error as Error;
    const reason = isRefused
      ? message
      : `the bundle cannot be fetched: ${withoutSecrets(message).slice(0, 200)}`;
    const isPlace = !(bundle instanceof Uint8Array) && String(bundle).length < MAX_SHOWN;
    const place = isPlace ? `${withoutSecrets(String(bundle))}: ` : "";
    const isUnavailable = !isRefused || error instanceof BundleUnavailable;
    throw new (isUnavailable ? BundleUnavailable : BundleRefused)(`${place}${reason}`, { cause });
  }
}
