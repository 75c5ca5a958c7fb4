// A model: its coefficients with their intervals, how good it is, and how its rounds went.
import { $, ask, count, figure, h, shown, utc } from "./shell.js";
import { bars } from "./charts.js";
import { fillAnswer } from "./tables.js";
/* global d3 */

// The largest, by the bars; the table has all.
const DRAWN = 30;

const ROUNDS = ["round", "epoch (UTC)", "state", "reports", "noise", "moved"];

function tabled(caption, titles, rows) {
  const head = h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)));
  const body = rows.map((row) => h("tr", {}, row.map((text) => h("td", {}, text))));
  return h(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": `Table of ${caption.toLowerCase()}` },
    h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, body)),
  );
}

function rounds(steps) {
  return tabled(
    "Rounds",
    ROUNDS,
    steps.map((one) => [
      `${one.number}`,
      one.date.replace("T", " "),
      one.state,
      one.state === "finished" ? count(one.reports) : "",
      one.noise ? figure(one.noise, 3) : "",
      one.moved ? figure(one.moved, 3) : "",
    ]),
  );
}

const JUDGE = {
  "to come": "will judge the finished model",
  running: "judge the model now",
  finished: "judged it, too few to say anything",
};

const WELL = { auc: "AUC", accuracy: "Accuracy" };

/** How good the finished model is, as devices say that taught it nothing; or when they will. */
function judged(found, level) {
  const date = found.date.replace("T", " ");
  if (!found.calibration.length) {
    const share = `${figure(100 * found.share, 2)}% of devices teach nothing and ${JUDGE[found.state]}`;
    return [h("p", {}, `${share}: round of ${date}.`)];
  }
  const good = ["auc", "accuracy"].flatMap((name) => {
    if (found[name] === null) return [];
    const ends = `${figure(found[`${name}_low`], 3)} to ${figure(found[`${name}_high`], 3)}`;
    return [`${WELL[name]} ${figure(found[name], 3)}, ${level} interval ${ends}: `];
  });
  return [
    h("p", {}, `${good.join("")}as ${count(found.reports)} devices told that taught it nothing, in the round of ${date}.`),
    tabled(
      "Calibration",
      ["foretold", "people", "true", `${level} interval`],
      found.calibration.map((one) => [
        `${figure(one.lowest, 3)} to ${figure(one.highest, 3)}`,
        `${figure(100 * Math.min(Math.max(one.people, 0), 1), 3)}%`,
        ...(one.people > 0
          ? [figure(one.estimate, 3), `${figure(one.low, 3)} to ${figure(one.high, 3)}`]
          : ["nobody", ""]),
      ]),
    ),
  ];
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
      value: shown(one.of_class ? `${one.of_class}: ${one.name}` : one.name, 60),
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
    const without = found.kind === "softmax" ? [] : ["of_class"];
    await fillAnswer(table, "Coefficients", "model", found, largest, { without });
  } else {
    $("learned").replaceChildren(...parts);
  }
  const level = `${figure(100 * found.confidence, 4)}%`;
  if (found.held_out) $("learned").append(...judged(found.held_out, level));
  $("learned").append(rounds(found.steps));
}
