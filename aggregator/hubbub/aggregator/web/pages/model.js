// A model: its coefficients with their intervals, and how its rounds went.
import { $, ask, count, figure, h, shown, utc } from "./shell.js";
import { bars } from "./charts.js";
import { fillAnswer } from "./tables.js";
/* global d3 */

// The largest, by the bars; the table has all.
const DRAWN = 30;

const ROUNDS = ["round", "epoch (UTC)", "state", "reports", "noise", "moved"];

function rounds(steps) {
  const rows = steps.map((one) =>
    h(
      "tr",
      {},
      [
        `${one.number}`,
        one.date.replace("T", " "),
        one.state,
        one.state === "finished" ? count(one.reports) : "",
        one.noise ? figure(one.noise, 3) : "",
        one.moved ? figure(one.moved, 3) : "",
      ].map((text) => h("td", {}, text)),
    ),
  );
  const head = h("tr", {}, ROUNDS.map((title) => h("th", { scope: "col" }, title)));
  return h(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of rounds" },
    h("table", {}, h("caption", {}, "Rounds"), h("thead", {}, head), h("tbody", {}, rows)),
  );
}

const went = (found) =>
  found.number < 0
    ? `No round is over yet; the first state is due ${utc(found.next)}.`
    : `${found.kind}, after round ${found.number} of ${found.rounds}, of ${count(found.reports)} reports` +
      (found.finished ? ": all rounds are over." : `; the next state is due ${utc(found.next)}.`);

/** Fills the section of a model. */
export async function showModel(name) {
  const found = await ask(`/v1/models/${encodeURIComponent(name)}`);
  const parts = [h("p", {}, went(found))];
  if (found.coefficients.length) {
    const largest = [...found.coefficients].sort(
      (one, other) => Math.abs(other.coefficient) - Math.abs(one.coefficient),
    );
    const drawing = h("div"),
      table = h("table");
    parts.push(
      h("figure", {}, drawing),
      h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of coefficients" }, table),
      h(
        "p",
        { class: "muted" },
        "An interval is of the coins and of who took part. Few rounds leave coefficients too small, which it does not tell.",
      ),
    );
    const drawn = largest.slice(0, DRAWN).map((one) => ({
      value: shown(one.name, 60),
      estimate: one.coefficient,
      low: one.low,
      high: one.high,
      detected: one.low > 0 || one.high < 0,
    }));
    $("learned").replaceChildren(...parts);
    bars(drawing, drawn, "Coefficients with their intervals; the table has the same", {
      axis: "coefficient, per unit of the feature",
      format: d3.format("~g"),
      told: d3.format(".4~g"),
    });
    await fillAnswer(table, "Coefficients", "model", found, largest);
  } else {
    $("learned").replaceChildren(...parts);
  }
  $("learned").append(rounds(found.steps));
}
