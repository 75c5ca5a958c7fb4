/** Type checks for parsed JSON: each function throws a TypeError for a value of another type. */

/** A JSON object. */
export type Table = Readonly<Record<string, unknown>>;

/** An object. */
export function table(value: unknown): Table {
  holds(typeof value === "object" && value !== null && !Array.isArray(value));
  return value as Table;
}

/** The entry under a name, but nothing inherited: a metric may be called "constructor". */
export function ownValue<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** A list. */
export function listed(value: unknown): readonly unknown[] {
  holds(Array.isArray(value));
  return value as unknown[];
}

/** A string. */
export function text(value: unknown): string {
  holds(typeof value === "string");
  return value as string;
}

/** A finite number. */
export function number(value: unknown): number {
  holds(Number.isFinite(value));
  return value as number;
}

/** A whole number. */
export function wholeNumber(value: unknown): number {
  holds(Number.isSafeInteger(value));
  return value as number;
}

function holds(truth: boolean): void {
  if (!truth) throw new TypeError("no such thing");
}
