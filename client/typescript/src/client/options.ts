/** What an app says as it opens a client, held against what may be said: JavaScript has no compiler. */
import { BadParameter } from "../errors.js";
import { meant } from "./hints.js";

/** By an option's name what it may be; types are in it as `typeof` names them, and "null". */
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
 * The options, once each is known and of its type. needed: of this platform, without which nothing
 * opens. more: others of this platform.
 *
 * @throws BadParameter one is not; the message says which, and never what it held.
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
