// The answer to a question: what makes it more or less to be trusted, its picture, its table.
/* global d3 */
import { $, before, button, count, figure, h, inUnit, ofMeans, percent, several, shown, utc } from "./shell.js";
import { bars, rounded } from "./charts.js";
import { fillAnswer } from "./tables.js";

const SHOWN = 25;
// At this chance the strings asked for are no explanation of the totals.
const DOUBT = 1e-3;
const TWINS = 5;

const note = (text, kind = "") => h("p", { class: `note ${kind}` }, text);
const span = (one) => `${count(one.low)} to ${count(one.high)}`;

/** What an analyst should not miss, each in a note.
 *  part: not all values are shown. looked: strings were looked for, and not found. */
export function flagsOf(found, part, looked) {
  const flags = [];
  if (found.findings.length) {
    const chance = found.honest_p_value.toExponential(0);
    flags.push(
      note(`Not from honest reports alone (p ≤ ${chance}): ${found.findings.join("; ")}`, "bad"),
    );
  }
  const waiting = found.waiting ? ` ${count(found.waiting)} reports wait at the shuffler.` : "";
  flags.push(
    found.final
      ? note("Final: these epochs take no more reports.", "good")
      : note(`Not final: reports of these epochs are still taken.${waiting}`),
  );
  if (found.withheld) {
    flags.push(note(`${count(found.withheld)} reports were withheld: too few to hide in a crowd.`));
  }
  if (found.others) {
    const which = looked ? "Strings that you did not list" : "Strings that were not found";
    const { estimate } = found.others;
    const ends = span(found.others);
    const told = estimate < 0 ? `${ends} reports` : `${count(estimate)} reports, ${ends}`;
    flags.push(note(`${which}: ${told}.`));
  }
  if (found.beginnings.length) {
    const names = found.beginnings.map((one) => `“${shown(one)}”`).join(", ");
    flags.push(note(`Only the beginning of longer strings: ${names}.`));
  }
  if (found.fit_p_value !== null && found.fit_p_value < DOUBT) {
    const chance = found.fit_p_value.toExponential(0);
    flags.push(
      note(`The strings asked for do not explain the totals (p = ${chance}): list more.`, "bad"),
    );
  }
  for (const { values } of found.twins.slice(0, TWINS)) {
    const names = values.slice(0, TWINS).map((one) => `“${shown(one)}”`);
    if (values.length > TWINS) names.push(`and ${count(values.length - TWINS)} more`);
    flags.push(
      note(`Not to be told apart, each with the figures of all together: ${names.join(", ")}.`),
    );
  }
  if (!ofMeans(found) && !part && !found.values.some((one) => one.detected)) {
    flags.push(
      note("Nothing stands out from zero: ask for more epochs, or wait for more reports."),
    );
  }
  return flags;
}

/** Whether its values are ranges of numbers, or coordinates, which have an order of their own. */
export const numeric = ({ kind, lowest }) => ["ranges", "vector"].includes(kind) || (kind === "values" && lowest !== null);

/** Bars with whiskers, and the table of the same numbers, in an order that a reader chose.
 *  place: its elements `answer`, `drawing`, `said` and `table`. sort: none where it has one order. */
export async function showEstimates(
  place,
  found,
  { first, hourly, consistent, beside, order, sort, find },
) {
  const mean = ofMeans(found);
  const updated = found.updated && utc(found.updated);
  place.answer.textContent =
    `${several(found.reports, "report")}, ${period(found, hourly)}` +
    (updated ? `; last counted ${updated}.` : ".") +
    before(found);
  const rows = found.values;
  const drawn = rows
    .slice(0, numeric(found) ? rows.length : SHOWN)
    .map((one) => ({
      ...one,
      estimate: consistent ? one.consistent : one.estimate,
      detected: mean || one.detected,
      beside: beside?.rows.get(one.value),
    }));
  const level = percent(found.confidence, 0);
  const what = found.kind === "vector" ? "The mean of each coordinate" : mean ? "The mean" : "Reports of each value";
  bars(
    place.drawing,
    drawn,
    `${what} with ${level} intervals; the table has the same numbers`,
    {
      most: mean ? null : found.reports,
      axis: mean ? inUnit("mean", found) : "reports",
      format: mean ? d3.format("~g") : rounded,
      told: mean ? figure : count,
    },
  );
  const pale = mean ? "" : "; pale bars do not stand out from zero";
  const said = [`Whiskers are ${level} intervals${pale}.`];
  const outside = drawn.some((one) => one.estimate < 0 || one.estimate > found.reports);
  if (!mean && outside && !found.notes.some((one) => one.startsWith("A share below 0"))) {
    said.push("An estimate below 0, or above all reports, is chance: its interval says what can be.");
  }
  said.push(
    found.whose === "reporters"
      ? "Of those who reported: intervals hold what was randomized, not who happened to report."
      : "Of the population that reports are from: intervals hold who happened to report too.",
  );
  if (!mean) {
    said.push("Intervals allow for chance: it may have put the first rows first.");
  }
  if (found.anytime) {
    said.push("They hold at every look while the epochs fill: look as often as you like.");
  }
  if (consistent) {
    said.unshift(
      "Consistent: post-processed, never below zero, a better picture and biased for a single value.",
      "The intervals are those of the unbiased estimates.",
    );
  }
  if (beside) said.unshift(`Below each bar: the interval of ${shown(beside.name)}.`);
  if (!first && found.total > drawn.length) {
    const which = order === "rank" ? "largest" : "first";
    said.push(`The ${drawn.length} ${which} of ${count(found.total)}.`);
  }
  if (find) said.push(`Only those with “${shown(find)}” in them: ${count(found.total)}.`);
  if (found.mean) {
    const { estimate, low, high } = found.mean;
    said.push(`${inUnit("Mean", found)}: ${figure(estimate)}, ${figure(low)} to ${figure(high)}.`);
  }
  place.said.textContent = [...said, ...found.notes.map((one) => shown(one, 400))].join(" ");
  const unit = mean ? shown(found.unit) || "the metric’s own unit" : "reports";
  const sorting = mean || !sort ? {} : { order, sort };
  await fillAnswer(place.table, `All numbers in ${unit}`, "estimates", found, rows, sorting);
}

/** Buttons for the rows before and after; `go` asks for the page that begins at a row. */
export function showPages(found, first, number, go) {
  const last = first + found.values.length;
  const parts = [`${count(first + 1)} to ${count(last)} of ${count(found.total)}`];
  if (first > 0) parts.push(button("Before", () => go(Math.max(0, first - number))));
  if (last < found.total) parts.push(button("More", () => go(first + number)));
  $("pages").replaceChildren(...(found.total > found.values.length ? parts : []));
}

function period(found, hourly) {
  const first = found.since.slice(0, 10);
  const last = new Date(new Date(found.until) - 1).toISOString().slice(0, 10);
  const hour = hourly && found.epochs.length === 1 ? ` ${found.since.slice(11, 16)}` : "";
  return `${first === last ? first + hour : `${first} to ${last}`} UTC`;
}
