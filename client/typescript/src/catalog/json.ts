/** JSON of a known shape, taken as it must be: each of these throws a TypeError for anything else. */

/** A JSON object. */
export type Table = Readonly<Record<string, unknown>>;

/** An object. */
export function table(thing: unknown): Table {
  if (typeof thing !== "object" || thing === null || Array.isArray(thing)) {
    throw new TypeError("a table is something else");
  }
  return thing as Table;
}

/** A list. */
export function listed(thing: unknown): readonly unknown[] {
  if (!Array.isArray(thing)) throw new TypeError("a list is something else");
  return thing;
}

/** A string. */
export function text(thing: unknown): string {
  if (typeof thing !== "string") throw new TypeError("a text is something else");
  return thing;
}

/** A finite number. */
export function number(thing: unknown): number {
  if (typeof thing !== "number" || !Number.isFinite(thing)) {
    throw new TypeError("a number is something else");
  }
  return thing;
}
