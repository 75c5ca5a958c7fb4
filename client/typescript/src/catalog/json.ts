/** JSON of a known shape, taken as it must be: each of these throws a TypeError for anything else. */

/** A JSON object. */
export type Table = Readonly<Record<string, unknown>>;

/** An object. */
export function table(thing: unknown): Table {
  holds(typeof thing === "object" && thing !== null && !Array.isArray(thing));
  return thing as Table;
}

/** What stands under a name: a metric may be called "constructor", which every object inherits. */
export function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** A list. */
export function listed(thing: unknown): readonly unknown[] {
  holds(Array.isArray(thing));
  return thing as unknown[];
}

/** A string. */
export function text(thing: unknown): string {
  holds(typeof thing === "string");
  return thing as string;
}

/** A finite number. */
export function number(thing: unknown): number {
  holds(Number.isFinite(thing));
  return thing as number;
}

/** A whole number. */
export function whole(thing: unknown): number {
  holds(Number.isSafeInteger(thing));
  return thing as number;
}

function holds(truth: boolean): void {
  if (!truth) throw new TypeError("no such thing");
}
