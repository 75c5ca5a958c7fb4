/**
 * Converts values other than listed texts (numbers, sets, parts) into the form that mechanisms
 * take.
 */
import type { Coded, Randomizer } from "../mechanisms/randomizer.js";
import { general } from "./number_text.js";
import { listed, number, table, text, type Table } from "./json.js";
import { NUMERIC, type Metric } from "./metric.js";
import { partedValue, partsOf } from "./parts.js";
import { plain } from "./plain_value.js";
import { rangedPlace, plainNumber, type Ranges } from "./ranges.js";
import { setCode } from "./sets.js";

const OTHER_VALUE = "other";
const MOST_EDGES = 257;
const LABEL_DIGITS = 10;

/** The function behind Metric.code, for a bundle's entry. */
export function coderOf(entry: Table, ofParts: boolean, randomizer: Randomizer): Metric["code"] {
  const kind = text(entry["kind"] ?? "");
  const other = entry["other"] === true;
  if (entry["values"] !== null) {
    const values = listed(entry["values"]).map(text);
    if (kind === "set") return (value) => setCode(values, value, other);
    if (ofParts) {
      const partValues = partsOf(values);
      const ranges = Object.entries(table(entry["ranges"] ?? {})).map(
        ([part, values]) =>
          [part, rangesOf(table(values), partValues.get(part) ?? [], "number")] as const,
      );
      const parts = { values: partValues, ranges: new Map(ranges) };
      return (value) => partedValue(parts, value);
    }
    const ranges = entry["edges"] === undefined ? undefined : rangesOf(entry, values, kind);
    if (other && (kind || !values.includes(OTHER_VALUE)))
      throw new TypeError("other needs a value named other");
    return (value) => rangedPlace(values, value, { ranges, other });
  }
  const { low, high } = table(entry["parameters"]);
  const unit = text(entry["unit"] ?? "");
  return (value) => {
    let plainValue = kind ? plainNumber(kind, unit, value) : plain(value);
    if (clamps(entry, kind) && typeof plainValue === "number" && Number.isFinite(plainValue)) {
      plainValue = Math.min(Math.max(plainValue, number(low)), number(high));
    }
    randomizer.check(plainValue);
    return plainValue as Coded;
  };
}

/** @throws TypeError the edges do not ascend, or the values are not the names of the ranges. */
function rangesOf(entry: Table, values: readonly string[], outside: string): Ranges {
  const kind = text(entry["kind"] ?? outside);
  const edges = listed(entry["edges"]).map(number);
  const unit = text(entry["unit"] ?? "");
  const ranges = { kind, edges, unit, clamps: clamps(entry, kind) };
  const fit = edges.every((edge, index) => {
    return (
      !(edge <= (edges[index - 1] ?? -Infinity)) && (kind !== "count" || Number.isInteger(edge))
    );
  });
  // A default adds one value behind the ranges: that there is no number.
  const escape = typeof entry["default"] === "string" ? [entry["default"]] : [];
  const labels = labelsOf(ranges);
  const expectedLabels = String(
    values.length === edges.length - 1 ? labels : [...labels, ...escape],
  );
  if (!fit || edges.length < 3 || edges.length > MOST_EDGES || expectedLabels !== String(values)) {
    throw new TypeError("the values must be the names of the ranges");
  }
  return ranges;
}

/** The names of the ranges between edges, as labels() of client/hubbub/catalog. */
function labelsOf({ kind, edges, unit, clamps }: Ranges): string[] {
  const unitSuffix = unit && ` ${unit}`;
  const highestEdge = edges.at(-1);
  const labels = edges.slice(1).map((high, index) => {
    const low = edges[index] ?? NaN;
    const highest = kind === "count" && high !== highestEdge ? high - 1 : high;
    const isSingle = highest === low && high !== highestEdge;
    return `${general(low, LABEL_DIGITS)}${isSingle ? "" : ` to ${general(highest, LABEL_DIGITS)}`}${unitSuffix}`;
  });
  if (!clamps) return labels;
  const edge = (index: number) => general(edges.at(index) ?? NaN, LABEL_DIGITS) + unitSuffix;
  const isOpen = kind === "number" || (edges[0] ?? 0) > 0;
  return [
    isOpen ? `below ${edge(1)}` : (labels[0] ?? ""),
    ...labels.slice(1, -1),
    `${edge(-2)} or more`,
  ];
}

function clamps(entry: Table, kind: string): boolean {
  const outside = entry["outside"] ?? "";
  return outside === "clamp" || (outside === "" && NUMERIC.has(kind));
}
