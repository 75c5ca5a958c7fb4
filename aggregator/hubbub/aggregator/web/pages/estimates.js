// Shows the answer to a question: notes on how far to trust it, its picture, its table.
import { $, noticeText, button, count, h, inFull, inUnit, measured, ofMeans, percent, several, printable, utc, figure } from "./shell.js";
import { bars, rounded } from "./charts.js";
import { acrossBars, showPercentiles } from "./percentiles.js";
import { fillAnswer } from "./tables.js";

const SHOWN = 25;
// Below this p-value, the requested strings do not explain the totals.
const DOUBT = 1e-3;
const TWINS = 5;

const note = (text, kind = "") => h("p", { class: `note ${kind}` }, text);
const span = (row) => `${count(row.low)} to ${count(row.high)}`;

/**
 * The notes that an analyst should not miss.
 *
 * part: whether only some values are shown. looked: whether strings were requested and not found.
 */
export function flagsOf(answer, part, looked) {
  const flags = [];
  if (answer.findings.length) {
    const chance = answer.honest_p_value.toExponential(0);
    flags.push(
      note(`Not explained by honest reports alone (p ≤ ${chance}): ${answer.findings.join("; ")}`, "bad"),
    );
  }
  const waiting = answer.waiting ? ` ${count(answer.waiting)} reports wait at the shuffler.` : "";
  flags.push(
    answer.final
      ? note("Final: these epochs accept no more reports.", "good")
      : note(`Not final: these epochs still accept reports.${waiting}`),
  );
  if (answer.others) {
    const subject = looked ? "Strings that you did not list" : "Strings that were not found";
    const { estimate } = answer.others;
    const ends = span(answer.others);
    const text = estimate < 0 ? `${ends} reports` : `${count(estimate)} reports, ${ends}`;
    flags.push(note(`${subject}: ${text}.`));
  }
  if (answer.beginnings.length) {
    const names = answer.beginnings.map((beginning) => `“${printable(beginning)}”`).join(", ");
    flags.push(note(`Only the beginning of longer strings: ${names}.`));
  }
  if (answer.fit_p_value !== null && answer.fit_p_value < DOUBT) {
    const chance = answer.fit_p_value.toExponential(0);
    flags.push(
      note(`The requested strings do not explain the totals (p = ${chance}): list more.`, "bad"),
    );
  }
  for (const { values } of answer.twins.slice(0, TWINS)) {
    const names = values.slice(0, TWINS).map((value) => `“${printable(value)}”`);
    if (values.length > TWINS) names.push(`and ${count(values.length - TWINS)} more`);
    flags.push(
      note(`Indistinguishable strings, each with the figures of all together: ${names.join(", ")}.`),
    );
  }
  if (!ofMeans(answer) && !part && !answer.values.some((value) => value.detected)) {
    const detected = answer.percentiles.length
      ? "Percentiles are below; no single range is detected"
      : "No value is detected";
    flags.push(note(`${detected}: select more epochs, or wait for more reports.`));
  }
  return flags;
}

/** Whether the values have a natural order: ranges of numbers, coordinates, steps, weeks. */
export const ordered = ({ kind, lowest, figures }) =>
  ["ranges", "vector"].includes(kind) || (kind === "values" && lowest !== null) || Boolean(figures);

/**
 * Shows bars with whiskers, and a table of the same numbers, in the order that the reader chose.
 *
 * place: has the elements `answer`, `drawing`, `notes` and `table`. sort: sorts by another column;
 * left out if the order is fixed.
 */
export async function showEstimates(
  place,
  answer,
  { first, hourly, consistent, beside, order, sort, find },
) {
  const mean = ofMeans(answer);
  const updated = answer.updated && utc(answer.updated);
  place.answer.textContent =
    `${several(answer.reports, "report")}, ${period(answer, hourly)}` +
    (updated ? `; last counted ${updated}.` : ".") +
    noticeText(answer);
  const rows = answer.values;
  const drawn = rows
    .slice(0, ordered(answer) ? rows.length : SHOWN)
    .map((row) => ({
      ...row,
      estimate: consistent ? row.consistent : row.estimate,
      detected: mean || row.detected,
      beside: beside?.rows.get(row.value),
    }));
  const level = percent(answer.confidence, 0);
  const measure = answer.kind === "vector" ? "The mean of each coordinate" : mean ? "The mean" : "Reports of each value";
  const ofValues = answer.unit && !mean ? `; values in ${printable(answer.unit)}` : "";
  const across = drawn.length === answer.total && !find ? acrossBars(answer) : [];
  bars(
    place.drawing,
    drawn,
    `${measure} with ${level} intervals; the table has the same numbers`,
    {
      most: mean ? null : answer.reports,
      axis: mean ? inUnit("mean", answer) : `reports${ofValues}`,
      format: mean ? figure : rounded,
      exact: mean ? inFull : count,
      across,
    },
  );
  const pale = mean ? "" : "; pale bars do not stand out from zero";
  const sentences = [`Whiskers are ${level} intervals${pale}.`];
  const outside = drawn.some((row) => row.estimate < 0 || row.estimate > answer.reports);
  if (!mean && outside && !answer.notes.some((note) => note.startsWith("A share below 0"))) {
    sentences.push("An estimate below 0, or above all reports, is chance: its bar ends where its interval does.");
  }
  sentences.push(
    answer.whose === "reporters"
      ? "The intervals cover the randomization noise, not the choice of who reported."
      : "For the population: the intervals cover the randomization noise and the choice of who reported.",
  );
  if (!mean) {
    sentences.push("The intervals allow for the selection of the largest rows.");
  }
  if (drawn.length && across.length) {
    sentences.push("Lines across the bars: percentiles, shaded where they may lie.");
  }
  if (answer.anytime) {
    sentences.push("The intervals hold at every look while the epochs fill: look as often as you like.");
  }
  if (consistent) {
    sentences.unshift(
      "Consistent: post-processed, never below zero, a better picture and biased for a single value.",
      "The intervals are those of the unbiased estimates.",
    );
  }
  if (beside) sentences.unshift(`Below each bar: the interval of ${printable(beside.name)}.`);
  if (!first && answer.total > drawn.length) {
    const firstRows = order === "rank" ? "largest" : "first";
    sentences.push(`The ${drawn.length} ${firstRows} of ${count(answer.total)}.`);
  }
  if (find) sentences.push(`Only those with “${printable(find)}” in them: ${count(answer.total)}.`);
  if (answer.mean) {
    const { estimate, stderr, low, high } = answer.mean;
    const ends = `${measured(low, stderr, "low")} to ${measured(high, stderr, "high")}`;
    sentences.push(`${inUnit("Mean", answer)}: ${measured(estimate, stderr)}, ${ends}.`);
  }
  place.notes.textContent = [...sentences, ...answer.notes.map((note) => printable(note, 400))].join(" ");
  if (place.percentiles) await showPercentiles(place.percentiles, answer);
  const unit = mean ? printable(answer.unit) || "the metric’s own unit" : "reports";
  const sorting = mean || !sort ? {} : { order, sort };
  await fillAnswer(place.table, `All numbers in ${unit}${ofValues}`, "estimates", answer, rows, sorting);
}

/** Shows buttons for the previous and next rows. go: requests the page that begins at a row. */
export function showPages(answer, first, number, go) {
  const last = first + answer.values.length;
  const parts = [`${count(first + 1)} to ${count(last)} of ${count(answer.total)}`];
  if (first > 0) parts.push(button("Before", () => go(Math.max(0, first - number))));
  if (last < answer.total) parts.push(button("More", () => go(first + number)));
  $("pages").replaceChildren(...(answer.total > answer.values.length ? parts : []));
}

function period(answer, hourly) {
  const first = answer.since.slice(0, 10);
  const last = new Date(new Date(answer.until) - 1).toISOString().slice(0, 10);
  const hour = hourly && answer.epochs.length === 1 ? ` ${answer.since.slice(11, 16)}` : "";
  return `${first === last ? first + hour : `${first} to ${last}`} UTC`;
}
