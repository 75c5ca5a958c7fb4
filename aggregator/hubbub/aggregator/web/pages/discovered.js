// The strings that a metric's discovering devices found, beside the counts of its other devices.
import { $, ask, figure, h, printable } from "./shell.js";
import { flagsOf, showEstimates } from "./estimates.js";
import { likelyStrings } from "./likely.js";
import { showState } from "./states.js";

// More rows than there can be detectable shares.
const ROWS = 1000;
// Status codes without an answer: an impossible question, or too few reports.
const UNANSWERED = [400, 409];

export class Discovered {
  constructor(path, metric, address) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    $("discovery").hidden = !metric.discover;
    const command = `hubbub discover ${metric.name} --as-candidates FILE`;
    $("discovering").replaceChildren(
      `${figure(100 * metric.discover)}% of the devices tell any string, listed or not; the others count what is listed. `,
      h("code", {}, printable(command, 300)),
      " writes what was found as a list.",
    );
  }

  async show({ asked: query }) {
    if (!this.metric.discover) return;
    const { last, epochs, confidence } = query;
    const question = { last: last ?? "", epochs: epochs ?? "", confidence, tier: "tree" };
    try {
      await this.draw(await ask(`${this.path}/estimates`, { ...question, number: ROWS, order: "rank" }), question);
    } catch (error) {
      if (!UNANSWERED.includes(error.status)) throw error;
      showState($("discovered"), error, {});
    }
  }

  async draw(answer, query) {
    const place = {
      answer: h("p", { class: "muted" }),
      drawing: h("div"),
      notes: h("figcaption", { class: "muted" }),
      table: h("table"),
    };
    $("discovered").replaceChildren(
      ...flagsOf(answer, false, false),
      place.answer,
      h("figure", {}, place.drawing, place.notes),
      h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of strings that were found" }, place.table),
      likelyStrings(this.path, query),
    );
    const hourly = this.metric.epoch_length === "hour";
    await showEstimates(place, answer, { first: 0, order: "rank", hourly });
    if (this.address.state.looks === "any") place.notes.append(" These hold at one look only.");
  }
}
