/**
 * The definition of a metric: SHA-256 of the fields that may never change under its name.
 * digests_of() of client/hubbub/catalog/values/list_versions.py hashes the same bytes.
 */
import { DEFINITION } from "./fields.js";
import { listed, number, ownValue, table, text, type Table } from "./json.js";

/**
 * Defining fields by name: the default, which the definition leaves out, and whether the number is
 * an integer.
 */
export type Definition = Readonly<
  Record<string, readonly [usual?: unknown, wholeNumber?: boolean]>
>;

const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*/g;
// Prefix of a spelled number: half of a surrogate pair, which no text of a bundle contains.
const SPELLED = "\ud800";
// Between these limits Python writes no exponent.
const [LEAST_EXPONENT, LARGEST_EXPONENT] = [-4, 15];

/**
 * Replaces each number of a JSON text by a text with Python's spelling, where 6.0 differs from 6.
 */
export function spelledOf(line: Uint8Array): Table {
  const json = new TextDecoder().decode(line).replace(TEXT_OR_NUMBER, (token) => {
    if (token.startsWith('"')) return token;
    const spelling = /[.eE]/.test(token)
      ? floatText(Number(token))
      : SPELLED + token.replace(/^-0$/, "0");
    return JSON.stringify(spelling);
  });
  return table(JSON.parse(json));
}

/** Whether a number, spelled or not, has no fraction and no exponent. */
export function isWhole(spelling: unknown): boolean {
  return typeof spelling === "string"
    ? spelling.startsWith(SPELLED) && !/[.e]/.test(spelling)
    : Number.isSafeInteger(spelling);
}

/**
 * The digest of each list of a metric's values, in hex, by its stream. entry: the metric's entry of
 * the bundle, in order; pythonEntry: the same with numbers in Python's spelling.
 */
export async function digestsOf(
  name: string,
  entry: Table,
  pythonEntry: Table,
): Promise<ReadonlyMap<string, string>> {
  const definition = definitionOf(entry, pythonEntry);
  const values = entry["values"] === null ? null : listed(entry["values"]);
  const earlierSizes = listed(entry["grown"] ?? []).map(number);
  const digests = [...earlierSizes, values?.length ?? 0].map(async (size, index) => {
    const stream = index ? `${name}/v${size}` : name;
    const meant = { ...definition, values: values?.slice(0, size) ?? null };
    const bytes = new TextEncoder().encode(canonical(meant));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0"));
    return [stream, hex.join("")] as const;
  });
  return new Map(await Promise.all(digests));
}

/** As Metric.definition() of client/hubbub/catalog/metric.py. */
function definitionOf(entry: Table, pythonEntry: Table): Table {
  const { breakdown, discover, model, ranges } = entry;
  const fields: Record<string, unknown> = { version: number(entry["version"]) };
  // Both may grow later: the list of values and the share of devices.
  if (breakdown !== undefined) fields["breakdown"] = listed(breakdown).map(fieldOf).sort();
  if (discover) fields["discover"] = 1;
  if (model !== undefined) {
    const learning = defining("model", table(model), table(pythonEntry["model"]));
    const { range } = learning;
    fields["model"] = range ? { ...learning, range: rangeOf(table(model)) } : learning;
  }
  if (ranges !== undefined && Object.keys(table(ranges)).length) {
    const parts = Object.entries(table(ranges)).map(([part, range]) => {
      const spelling = ownValue(table(pythonEntry["ranges"]), part);
      return [part, defining("ranges", table(range), table(spelling))] as const;
    });
    fields["ranges"] = Object.fromEntries(parts);
  }
  return { ...defining("metric", entry, pythonEntry), ...fields };
}

const fieldOf = (rule: unknown) => text(listed(rule)[0]);
const rangeOf = ({ range }: Table) => listed(range).map((end) => floatText(number(end)));

/** The defining fields that differ from their defaults. */
function defining(section: keyof typeof DEFINITION, entry: Table, pythonEntry: Table): Table {
  const fields = Object.entries(DEFINITION[section]).filter(([field, usual]) => {
    const content = ownValue(entry, field);
    const isUsual = usual.length && JSON.stringify(content) === JSON.stringify(usual[0]);
    return content !== undefined && !isUsual;
  });
  return Object.fromEntries(
    fields.map(([field, [, isWhole]]) => [field, (isWhole ? entry : pythonEntry)[field]]),
  );
}

/** A number as repr() of a float spells it in Python. */
function floatText(number: number): string {
  const [digits = "", exponent = ""] = number.toExponential().split("e");
  const size = Number(exponent);
  const sign = Object.is(number, -0) ? "-" : "";
  if (size >= LEAST_EXPONENT && size <= LARGEST_EXPONENT)
    return `${SPELLED}${sign}${number}${Number.isInteger(number) ? ".0" : ""}`;
  const exponentDigits = `${Math.abs(size)}`.padStart(2, "0");
  return `${SPELLED}${digits}e${size < 0 ? "-" : "+"}${exponentDigits}`;
}

/** JSON as Python's json.dumps() writes it, without blanks and with sorted names. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(
      ([name, content]) => [orderOf(name), name, content] as const,
    );
    fields.sort(([first], [second]) => (first < second ? -1 : 1));
    return `{${fields.map(([, name, member]) => `${canonical(name)}:${canonical(member)}`).join(",")}}`;
  }
  if (typeof value === "string" && value.startsWith(SPELLED)) return value.slice(SPELLED.length);
  return JSON.stringify(value).replace(/[\x7f-\uffff]/g, (surrogate) => `\\u${hex(surrogate, 4)}`);
}

/** A sort key like Python's: by code points, not by UTF-16 units. */
const orderOf = (name: string) => Array.from(name, (letter) => hex(letter, 6)).join("");
const hex = (letter: string, digits: number) =>
  (letter.codePointAt(0) ?? 0).toString(16).padStart(digits, "0");
