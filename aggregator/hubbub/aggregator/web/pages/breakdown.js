// A metric by what is public of devices: each part beside all others, and what has no answer yet.
/* global d3 */
import { $, ask, before, count, h, inUnit, ofMeans, shown } from "./shell.js";
import { bars } from "./charts.js";
import { showState } from "./states.js";
import { fillAnswer } from "./tables.js";

// Of so many rows each has a bar; of more the table alone.
const DRAWN = 60;

export class BrokenDown {
  /** change: goes to another state, which says by which field. */
  constructor(path, metric, address, change) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    this.control = $("breaking").elements.by;
    this.control.replaceChildren(
      ...metric.public.map((one) => h("option", { value: one }, shown(one))),
    );
    this.control.addEventListener("change", () => change({ by: this.control.value }));
  }

  async show({ asked, body }) {
    if (!this.metric.public.length) return;
    const by = this.address.state.by || this.metric.public[0];
    this.control.value = by;
    const { last, epochs, confidence, list } = asked;
    const given = { last: last ?? "", epochs: epochs ?? "", confidence, list: list ?? [] };
    given.by = by;
    try {
      await show(await ask(`${this.path}/breakdown`, given, body));
    } catch (error) {
      if (error.status !== 400) throw error;
      showState($("broken"), error, {});
    }
  }
}

/** Parts that have no answer, in a sentence. */
function unanswered(found) {
  const few = found.parts.filter((one) => !one.answered && (one.part !== "unlisted" || one.reports));
  if (!few.length) return "";
  const told = few.map((one) => `${shown(one.part)} (${count(one.reports)})`).join(", ");
  return ` Below the minimum batch of ${count(found.min_batch)} reports, so without an answer: ${told}.`;
}

async function show(found) {
  const mean = ofMeans(found);
  const drawing = h("div"),
    table = h("table");
  const marked = found.values.filter((one) => one.stands_out).length;
  const said = marked
    ? `${count(marked)} of ${count(found.values.length)} differ from all others beyond chance; pale bars do not.`
    : "No part differs from all others beyond what chance explains.";
  const few = unanswered(found);
  const whose = " Shares are of a part’s reports; differences of the population that they are from.";
  $("broken").replaceChildren(
    h("p", {}, `${said}${few}${whose}${before(found)}`),
    h("figure", {}, drawing),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of parts" }, table),
  );
  if (found.values.length <= DRAWN) {
    const drawn = found.values.map((one) => ({
      value: `${one.part}: ${one.value}`,
      estimate: one.share,
      low: one.low,
      high: one.high,
      detected: one.stands_out,
    }));
    bars(drawing, drawn, "Each part with its intervals; the table has the same", {
      most: mean ? null : 1,
      axis: mean ? inUnit("mean", found) : "share of the part’s reports",
      format: mean ? d3.format("~g") : d3.format(".0%"),
      told: mean ? d3.format(".5~g") : d3.format(".2%"),
    });
  }
  await fillAnswer(table, `By ${shown(found.by)}`, "breakdown", found, found.values);
}
