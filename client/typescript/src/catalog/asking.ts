/**
 * When a device is asked, and what tells its answers apart: as periods.py and breakdown.py of
 * client/hubbub/catalog. Loaded where a bundle has any of it.
 */
import { BadParameter, UnknownMetric } from "../errors.js";
import { pick } from "../mechanisms/bits.js";
import { concatenated, packed } from "../mechanisms/packing.js";
import { purpose } from "../mechanisms/permanent.js";
import type { Memo } from "../mechanisms/randomizer.js";
import { DAY_SECONDS, epochAt, epochStart } from "./epochs.js";
import { listed, own, text, type Table } from "./json.js";
import type { Breakdown, Period, Public } from "./metric.js";

const SPAN = /^([1-9][0-9]{0,2})([dw])$/;
const MONTH = "month";
const MONTH_DAYS = 31; // at most
const DAY_BYTES = 8;

/** A metric's period, if it is asked on one day of each. @throws UnknownMetric one of a later version. */
export function periodOf({ period, report_on: on, epoch }: Table): Period | null {
  if (period === undefined && on === undefined) return null;
  const span = daysOf(period);
  if (on !== "one day" || epoch !== "day") throw unknown();
  const days = (day: number): readonly [number, number] => {
    if (period !== MONTH) return [day - (day % span), day - (day % span) + span];
    const month = epochAt(day * DAY_SECONDS, MONTH);
    return [epochStart(month, MONTH) / DAY_SECONDS, epochStart(month + 1, MONTH) / DAY_SECONDS];
  };
  return {
    days,
    isOwn(day, memo: Memo) {
      // PRIVACY: of the secret and the calendar alone.
      const [first, end] = days(day);
      const bytes = packed(BigInt(first), DAY_BYTES).reverse();
      return first + pick(memo.coins(concatenated(purpose("period"), bytes)), end - first) === day;
    },
  };
}

/**
 * For how many days in a row a metric's central promise is, if it is for more than an epoch.
 *
 * @throws UnknownMetric a span of a later version.
 */
export function centralDaysOf({ central_period: span }: Table): number | null {
  return span === undefined ? null : daysOf(span);
}

/** The days of a span at most. */
function daysOf(span: unknown): number {
  if (span === MONTH) return MONTH_DAYS;
  const [, number, unit] = SPAN.exec(text(span)) ?? [];
  if (!number) throw unknown();
  return Number(number) * (unit === "w" ? 7 : 1);
}

function unknown(): UnknownMetric {
  return new UnknownMetric("a metric has unknown periods; upgrade hubbub");
}

/** What is public of devices by which a metric's answers are told apart, if anything is. */
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

/** What the app says of its device. @throws BadParameter it throws as it is asked. */
function saidOf(publicValues: Public, field: string): unknown {
  try {
    const value = own(publicValues, field);
    return typeof value === "function" ? value() : value;
  } catch {
    // Its text may hold anything.
    throw new BadParameter(
      `public: ${field} throws as it is read; pass a text, or a function that returns a text`,
    );
  }
}

/** A pattern of the shell: * for any letters, ? for one, [abc] and [!a-c] for one of some. */
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
