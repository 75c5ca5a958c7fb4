/**
 * Local mode: nothing is drawn, charged or sent. Reported values are counted on this device, for
 * its person to see. As in client/hubbub/client/reporter.py; loaded only if an app uses it.
 */
import { isOfVectors, type Metric } from "../catalog/metric.js";
import { general } from "../catalog/number_text.js";
import { listed, number, ownValue, table, text } from "../catalog/json.js";
import { partsOf } from "../catalog/parts.js";
import { withCounts, type Device } from "./device.js";
import type { Outcome } from "./outcome.js";
import type { Reporter } from "./reporter.js";
import type { State } from "./state.js";

// Numbers without buckets are shown in this many slices of their range.
const SLICES = 8;
const LABEL_DIGITS = 6;
const MAX_VALUES = 1000;
const MARK = ": "; // the names of reasons and faults never contain this mark
const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/u;

/** The counts of one client that are not stored yet. */
export class Local {
  #counted: string[] = [];

  constructor(readonly reporter: Reporter) {}

  /** Counts a value; code: as the mechanism takes it. */
  count({ name, entry }: Metric, code: unknown): Outcome {
    return this.add(name, labelOf(entry, code));
  }

  /** Counts a label. */
  add(name: string, label: string): Outcome {
    const { reporter } = this;
    if (!reporter.isOn) return reporter.canKeep ? "disabled" : "no_state";
    this.#counted.push(name + MARK + (UNPRINTABLE.test(label) ? "unprintable" : label));
    return "counted";
  }

  /** Drops counts that are not stored yet. */
  forget(): void {
    this.#counted = [];
  }

  /** Moves the counts into the state. @throws StateUnusable the counts stay here. */
  async keep(state: State): Promise<Device> {
    const names = this.#counted;
    const device = await state.change((device) =>
      names.length ? { ...device, counts: mostFrequent(withCounts(device.counts, names)) } : device,
    );
    this.#counted = this.#counted.slice(names.length);
    return device;
  }
}

/**
 * Splits the device's counts: reasons and faults, and the counts of local mode by metric and value.
 */
export function ownCountsOf(counts: Device["counts"]) {
  const others: [string, number][] = [];
  const metrics = new Map<string, [string, number][]>();
  for (const [name, times] of Object.entries(counts)) {
    const position = name.indexOf(MARK);
    if (position < 0) others.push([name, times]);
    else {
      const metric = name.slice(0, position);
      metrics.set(metric, [
        ...(metrics.get(metric) ?? []),
        [name.slice(position + MARK.length), times],
      ]);
    }
  }
  const ownCounts = [...metrics].map(
    ([name, values]) => [name, Object.fromEntries(values)] as const,
  );
  return { counts: Object.fromEntries(others), ownCounts: Object.fromEntries(ownCounts) };
}

/** The most frequent values, if there are too many. */
function mostFrequent(counts: Device["counts"]): Device["counts"] {
  const entries = Object.entries(counts);
  const values = entries.filter(([name]) => name.includes(MARK));
  if (values.length <= MAX_VALUES) return counts;
  const frequent = values.sort(([, first], [, second]) => second - first).slice(0, MAX_VALUES);
  const others = entries.filter(([name]) => !name.includes(MARK));
  return Object.fromEntries([...others, ...frequent]);
}

/** A readable name of a mechanism's value, as label_of() of client/hubbub/catalog/payload_meanings.py. */
function labelOf(entry: Metric["entry"], code: unknown): string {
  if (entry["model"] !== undefined) return "examples";
  if (isOfVectors(entry)) return "vectors";
  if (entry["values"] === null)
    return typeof code === "number" ? sliceOf(entry, code) : String(code);
  const values = listed(entry["values"]).map(text);
  if (typeof code === "bigint") {
    return values.filter((_, index) => (code >> BigInt(index)) & 1n).join(", ") || "none";
  }
  if (entry["mechanism"] !== "pairs") return values[Number(code)] ?? "";
  let remainder = Number(code);
  const parts = [...partsOf(values)].reverse().map(([part, options]) => {
    const place = remainder % options.length;
    remainder = (remainder - place) / options.length;
    return `${part}=${options[place] ?? ""}`;
  });
  return parts.reverse().join(", ");
}

/** The slice of the range that contains a number. */
function sliceOf(entry: Metric["entry"], code: number): string {
  const parameters = table(entry["parameters"]);
  const [low, high] = [number(parameters["low"]), number(parameters["high"])];
  const slices = number(ownValue(parameters, "buckets") ?? SLICES);
  const edge = (index: number) => low + ((high - low) * index) / slices;
  let place = slices - 1;
  while (place > 0 && edge(place) > code) place -= 1;
  return `${general(edge(place), LABEL_DIGITS)} to ${general(edge(place + 1), LABEL_DIGITS)}`;
}
