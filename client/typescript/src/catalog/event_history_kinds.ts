/**
 * Kinds whose value a device computes from its past events. As event_history_kinds.py of
 * client/hubbub/catalog/values. Loaded only if a bundle has such a metric.
 */
import { ValueOutOfDomain } from "../errors.js";
import { epochAt, epochStart } from "./epochs.js";
import { listed, number, table, text, type Table } from "./json.js";
import type { Metric, Past } from "./metric.js";
import { listedPlace } from "./values.js";

const USE = "use";

/** How a device computes a metric's value. code: the metric's encoding. */
export function pastOf(entry: Table, code: Metric["code"]): Past {
  const { kind, rate } = entry;
  const values = listed(entry["values"]).map(text);
  const counts = kind === "funnel" || kind === "rate";
  return {
    counts,
    event(value) {
      if (counts) return values[listedPlace(values, value)] ?? "";
      if (value === undefined || value === null) return USE;
      throw new ValueOutOfDomain(`a metric of kind ${String(kind)} takes no value; leave it out`);
    },
    computed(epoch, events, reported) {
      if (kind === "rate") {
        const max = number(table(rate)["most"]);
        return code(values.map((event) => Math.min(events[event] ?? 0, max)));
      }
      if (kind === "funnel")
        return Math.max(...Object.keys(events).map((event) => values.indexOf(event)));
      if (kind === "activity") {
        if (isFirst("28d", epoch, reported)) return 2;
        return isFirst("week", epoch, reported) ? 1 : 0;
      }
      const week = epoch - Math.min(epoch, ...reported);
      return Math.min(week, values.length - 1);
    },
  };
}

/** Whether no reported day is in the same epoch of this length. */
function isFirst(length: string, day: number, reported: readonly number[]): boolean {
  const epochOf = (day: number) => epochAt(epochStart(day, "day"), length);
  return reported.every((other) => epochOf(other) !== epochOf(day));
}
