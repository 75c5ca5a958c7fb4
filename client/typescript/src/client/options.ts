/** Checks the options of an app when it opens a client, since JavaScript has no compiler. */
import { BadParameter } from "../errors.js";
import { meant } from "./hints.js";

/** Allowed types by an option's name: as `typeof` names them, or "null". */
export type Allowed = Readonly<Record<string, string>>;

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
