/**
 * What a metric means: SHA-256 of what may never change under its name, as digests_of() of
 * client/hubbub/catalog/values/list_versions.py computes it, of the same bytes.
 */
import { DEFINITION } from "./fields.js";
import { listed, number, own, table, text, type Table } from "./json.js";

/** Defining fields by name: the default, which is no part of a definition, and whether it is whole. */
export type Definition = Readonly<Record<string, readonly [usual?: unknown, whole?: boolean]>>;

const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*/g;
// What a number begins with that is spelled out: half of a letter, which no text of a bundle holds.
const SPELLED = "\ud800";
// Between these Python writes no exponent.
const [LEAST_EXPONENT, LARGEST_EXPONENT] = [-4, 15];

/** JSON with each number as Python spells it, in a text: 6.0 is another number there than 6. */
export function spelledOf(line: Uint8Array): Table {
  const json = new TextDecoder().decode(line).replace(TEXT_OR_NUMBER, (token) => {
    if (token.startsWith('"')) return token;
    const spelling = /[.eE]/.test(token)
      ? real(Number(token))
      : SPELLED + token.replace(/^-0$/, "0");
    return JSON.stringify(spelling);
  });
  return table(JSON.parse(json));
}

/** Whether a number that is spelled out, or is one, has no fraction and no exponent. */
export function isWhole(spelling: unknown): boolean {
  return typeof spelling === "string"
    ? spelling.startsWith(SPELLED) && !/[.e]/.test(spelling)
    : Number.isSafeInteger(spelling);
}

/**
 * The digest of each list of a metric's values, in hex, by its stream. entry: as the bundle has it, in
 * order; spelled: the same with numbers as Python spells them.
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
  // Of whose values, and of how many devices, there may be more one day.
  if (breakdown !== undefined) fields["breakdown"] = listed(breakdown).map(fieldOf).sort();
  if (discover) fields["discover"] = 1;
  if (model !== undefined) {
    const learning = defining("model", table(model), table(pythonEntry["model"]));
    const { range } = learning;
    fields["model"] = range ? { ...learning, range: rangeOf(table(model)) } : learning;
  }
  if (ranges !== undefined && Object.keys(table(ranges)).length) {
    const parts = Object.entries(table(ranges)).map(([part, range]) => {
      const spelling = own(table(pythonEntry["ranges"]), part);
      return [part, defining("ranges", table(range), table(spelling))] as const;
    });
    fields["ranges"] = Object.fromEntries(parts);
  }
  return { ...defining("metric", entry, pythonEntry), ...fields };
}

const fieldOf = (rule: unknown) => text(listed(rule)[0]);
const rangeOf = ({ range }: Table) => listed(range).map((end) => real(number(end)));

/** The fields that define something and are not what they are by default. */
function defining(section: keyof typeof DEFINITION, entry: Table, pythonEntry: Table): Table {
  const fields = Object.entries(DEFINITION[section]).filter(([field, usual]) => {
    const content = own(entry, field);
    const isUsual = usual.length && JSON.stringify(content) === JSON.stringify(usual[0]);
    return content !== undefined && !isUsual;
  });
  return Object.fromEntries(
    fields.map(([field, [, isWhole]]) => [field, (isWhole ? entry : pythonEntry)[field]]),
  );
}

/** A number as repr() of a float spells it in Python. */
function real(number: number): string {
  const [digits = "", exponent = ""] = number.toExponential().split("e");
  const size = Number(exponent);
  const sign = Object.is(number, -0) ? "-" : "";
  if (size >= LEAST_EXPONENT && size <= LARGEST_EXPONENT)
    return `${SPELLED}${sign}${number}${Number.isInteger(number) ? ".0" : ""}`;
  const exponentDigits = `${Math.abs(size)}`.padStart(2, "0");
  return `${SPELLED}${digits}e${size < 0 ? "-" : "+"}${exponentDigits}`;
}

/** JSON as json.dumps() of Python writes it, without blanks and with names in order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(
      ([name, content]) => [orderOf(name), name, content] as const,
    );
    fields.sort(([first], [second]) => (first < second ? -1 : 1));
    return `{${fields.map(([, name, own]) => `${canonical(name)}:${canonical(own)}`).join(",")}}`;
  }
  if (typeof value === "string" && value.startsWith(SPELLED)) return value.slice(SPELLED.length);
  return JSON.stringify(value).replace(/[\x7f-\uffff]/g, (half) => `\\u${hex(half, 4)}`);
}

/** Where Python sorts a name: by its letters' numbers, not by halves of letters. */
const orderOf = (name: string) => Array.from(name, (letter) => hex(letter, 6)).join("");
const hex = (letter: string, digits: number) =>
  (letter.codePointAt(0) ?? 0).toString(16).padStart(digits, "0");
