// A metric by a public field of the devices: each part compared with all others, and the parts
// without an answer.
/* global d3 */
import { $, ask, noticeText, notesText, count, h, inFull, inUnit, ofMeans, printable, figure, several } from "./shell.js";
import { bars } from "./charts.js";
import { showState } from "./states.js";
import { textOf } from "./percentiles.js";
import { fillAnswer } from "./tables.js";

// Up to this many rows are drawn as bars; more rows appear only in the table.
const DRAWN = 60;

export class BrokenDown {
  /** change: goes to another state, with another public field. */
  constructor(path, metric, address, change) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    this.control = $("breaking").elements.by;
    this.control.replaceChildren(
      ...metric.public.map((field) => h("option", { value: field }, printable(field))),
    );
    this.control.addEventListener("change", () => change({ by: this.control.value }));
  }

  async show({ asked: query, body }) {
    if (!this.metric.public.length) return;
    const field = this.address.state.by || this.metric.public[0];
    this.control.value = field;
    const { last, epochs, confidence, list } = query;
    const question = { last: last ?? "", epochs: epochs ?? "", confidence, list: list ?? [] };
    question.by = field;
    try {
      await show(await ask(`${this.path}/breakdown`, question, body));
    } catch (error) {
      if (error.status !== 400) throw error;
      showState($("broken"), error, {});
    }
  }
}

/** The text that lists the parts without an answer. */
function unansweredParts(answer) {
  const unanswered = answer.parts.filter((part) => !part.answered && (part.part !== "unlisted" || part.reports));
  if (!unanswered.length) return "";
  const parts = unanswered.map((part) => `${printable(part.part)} (${count(part.reports)}${part.withheld ? `, ${count(part.withheld)} withheld` : ""})`).join(", ");
  return ` Below the minimum batch of ${count(answer.min_batch)} reports, so without an answer: ${parts}.`;
}

async function show(answer) {
  const mean = ofMeans(answer);
  const drawing = h("div"),
    table = h("table");
  const marked = answer.values.filter((value) => value.stands_out).length;
  const summary = marked
    ? `${count(marked)} of ${count(answer.values.length)} differ from all others beyond chance; pale bars do not.`
    : answer.values.some((value) => value.p_value !== null)
      ? "No part differs from all others beyond chance."
      : "No part has others to compare with.";
  const values = answer.values.filter((value) => value.stands_out || !answer.folded);
  const leftOut = answer.values.length - values.length;
  const leftOutText = leftOut ? ` Left out: ${several(leftOut, "range")} that ${leftOut === 1 ? "does" : "do"} not.` : "";
  const missing = unansweredParts(answer);
  const shareNote = " Shares are of a part’s reports; differences of the population that they are from.";
  $("broken").replaceChildren(
    h("p", {}, `${summary}${leftOutText}${missing}${shareNote}${notesText(answer)}${noticeText(answer)}`),
    ...answer.parts
      .map((part) => [printable(part.part), textOf(part)])
      .filter(([, percentiles]) => percentiles)
      .map(([part, percentiles]) => h("p", {}, `${part}: ${inUnit(percentiles, answer)}`)),
    h("figure", {}, drawing),
    values.length ? h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of parts" }, table) : "",
  );
  if (values.length && values.length <= DRAWN) {
    const rows = values.map((value) => ({
      value: `${value.part}: ${value.value}`,
      estimate: value.share,
      low: value.low,
      high: value.high,
      detected: value.stands_out,
    }));
    bars(drawing, rows, "Each part with its intervals; the table has the same", {
      most: mean ? null : 1,
      axis: mean ? inUnit("mean", answer) : "share of the part’s reports",
      format: mean ? figure : d3.format(".0%"),
      exact: mean ? inFull : d3.format(".2%"),
    });
  }
  await fillAnswer(table, `By ${printable(answer.by)}`, "breakdown", answer, values);
}
