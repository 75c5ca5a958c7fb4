/** What an app may report beyond listed values, as mechanisms take it: numbers, sets, parts. */
import type { Coded, Randomizer } from "../mechanisms/randomizer.js";
import { listed, number, table, text, type Table } from "./json.js";
import { NUMERIC, type Metric } from "./metric.js";
import { partedValue, partsOf } from "./parts.js";
import { rangedPlace, plainNumber, type Ranges } from "./ranges.js";
import { setCode } from "./sets.js";

/** As Metric.code has it, of a bundle's entry. */
export function coderOf(entry: Table, ofParts: boolean, randomizer: Randomizer): Metric["code"] {
  const kind = text(entry["kind"] ?? "");
  const other = entry["other"] === true;
  if (entry["values"] !== null) {
    const values = listed(entry["values"]).map(text);
    if (kind === "set") return (value) => setCode(values, value, other);
    if (ofParts) {
      const ranges = Object.entries(table(entry["ranges"] ?? {})).map(
        ([part, own]) => [part, rangesOf(table(own), "number")] as const,
      );
      const parts = { values: partsOf(values), ranges: new Map(ranges) };
      return (value) => partedValue(parts, value);
    }
    const ranges = entry["edges"] === undefined ? undefined : rangesOf(entry, kind);
    return (value) => rangedPlace(values, value, { ranges, other });
  }
  const { low, high } = table(entry["parameters"]);
  return (value) => {
    let plain = kind ? plainNumber(kind, value) : value;
    if (clamps(entry, kind) && typeof plain === "number" && Number.isFinite(plain)) {
      plain = Math.min(Math.max(plain, number(low)), number(high));
    }
    randomizer.check(plain);
    return plain as Coded;
  };
}

function rangesOf(entry: Table, otherwise: string): Ranges {
  const kind = text(entry["kind"] ?? otherwise);
  return { kind, edges: listed(entry["edges"]).map(number), clamps: clamps(entry, kind) };
}

function clamps(entry: Table, kind: string): boolean {
  const outside = entry["outside"] ?? "";
  return outside === "clamp" || (outside === "" && NUMERIC.has(kind));
}
