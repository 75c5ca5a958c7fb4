/**
 * Periods and breakdowns: on which day a device is asked, and which public fields split the
 * answers. As catalog/epochs_and_periods.py and catalog/breakdown.py. Loaded only if a bundle has either.
 */
import { BadParameter, UnknownMetric } from "../errors.js";
import { pick } from "../mechanisms/random_bits.js";
import { concatenated, packed } from "../mechanisms/packing.js";
import { purpose } from "../mechanisms/permanent.js";
import type { Memo } from "../mechanisms/randomizer.js";
import { DAY_SECONDS, epochAt, epochStart } from "./epochs.js";
import { listed, ownValue, text, type Table } from "./json.js";
import type { Breakdown, Period, Public } from "./metric.js";

const SPAN = /^([1-9][0-9]{0,2})([dw])$/;
const MONTH = "month";
const MONTH_DAYS = 31; // at most
const DAY_BYTES = 8;

/**
 * A metric's period, if it asks each device on one day of a period. @throws UnknownMetric the
 * period is of a later version.
 */
export function periodOf({ period, report_on: reportOn, epoch }: Table): Period | null {
  if (period === undefined && reportOn === undefined) return null;
  const span = daysOf(period);
  if (reportOn !== "one day" || epoch !== "day") throw unknownMetric();
  const days = (day: number): readonly [number, number] => {
    if (period !== MONTH) return [day - (day % span), day - (day % span) + span];
    const month = epochAt(day * DAY_SECONDS, MONTH);
    return [epochStart(month, MONTH) / DAY_SECONDS, epochStart(month + 1, MONTH) / DAY_SECONDS];
  };
  return {
    days,
    isOwn(day, memo: Memo) {
      // PRIVACY: the day depends only on the secret and the calendar.
      const [first, end] = days(day);
      const bytes = packed(BigInt(first), DAY_BYTES).reverse();
      return first + pick(memo.coins(concatenated(purpose("period"), bytes)), end - first) === day;
    },
  };
}

/**
 * How many consecutive days a metric's central promise covers, if it covers more than an epoch.
 *
 * @throws UnknownMetric the span is of a later version.
 */
export function centralDaysOf({ central_period: span }: Table): number | null {
  return span === undefined ? null : daysOf(span);
}

/** The maximum number of days of a span. */
function daysOf(span: unknown): number {
  if (span === MONTH) return MONTH_DAYS;
  const [, number, unit] = SPAN.exec(text(span)) ?? [];
  if (!number) throw unknownMetric();
  return Number(number) * (unit === "w" ? 7 : 1);
}

function unknownMetric(): UnknownMetric {
  return new UnknownMetric("a metric has unknown periods; upgrade hubbub");
}

/** The public fields of devices that split a metric's answers, if there are any. */
export function breakdownOf({ breakdown }: Table): Breakdown | null {
  if (breakdown === undefined) return null;
  const rules = listed(breakdown).map((rule) => {
    const [field, values] = listed(rule);
    const fieldRules = listed(values).map((rule) => {
      const [value, patterns] = listed(rule);
      return [text(value), listed(patterns).map((pattern) => patternOf(text(pattern)))] as const;
    });
    return [text(field), fieldRules] as const;
  });
  return {
    fields: rules.map(([field]) => field),
    cells: rules.reduce<string[]>((cells, [field, fieldRules]) => {
      const fieldCells = fieldRules.map(([value]) => `${field}=${value}`);
      return cells.length
        ? cells.flatMap((cell) => fieldCells.map((nextCell) => `${cell},${nextCell}`))
        : fieldCells.map((nextCell) => `@${nextCell}`);
    }, []),
    cell(publicValues) {
      const parts: string[] = [];
      for (const [field, fieldRules] of rules) {
        const value = saidOf(publicValues, field);
        if (typeof value !== "string") return "";
        const rule = fieldRules.find(([, patterns]) =>
          patterns.some((pattern) => pattern.test(value)),
        );
        if (!rule) return "";
        parts.push(`${field}=${rule[0]}`);
      }
      return parts.length ? `@${parts.join(",")}` : "";
    },
  };
}

/**
 * The public value that the app gives for its device. @throws BadParameter the app's function
 * throws.
 */
function saidOf(publicValues: Public, field: string): unknown {
  try {
    const value = ownValue(publicValues, field);
    return typeof value === "function" ? value() : value;
  } catch {
    // The error's text may contain anything, so it is not shown.
    throw new BadParameter(
      `public: ${field} throws as it is read; pass a text, or a function that returns a text`,
    );
  }
}

/**
 * Converts a shell pattern: * matches any letters, ? one letter, [abc] and [!a-c] one letter of a
 * set.
 */
function patternOf(pattern: string): RegExp {
  let source = "";
  for (const [part, , , not, set] of pattern.matchAll(/(\*)|(\?)|\[(!?)(\]?[^\]]*)\]|[^]/gu)) {
    if (part === "*") source += ".*";
    else if (part === "?") source += ".";
    else if (set) source += `[${not ? "^" : ""}${set.replace(/[\\[\]^]/g, "\\$&")}]`;
    else source += part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  }
  try {
    return new RegExp(`^(?:${source})$`, "su");
  } catch {
    throw new UnknownMetric("a metric has an unknown breakdown; upgrade hubbub");
  }
}
