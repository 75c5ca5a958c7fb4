// The page of a model: its coefficients with intervals, its quality, and its rounds.
import { $, ask, count, figure, h, printable, utc } from "./shell.js";
import { bars } from "./charts.js";
import { fillAnswer } from "./tables.js";
/* global d3 */

// The number of largest coefficients that are drawn as bars; the table contains all.
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
    steps.map((step) => [
      `${step.number}`,
      step.date.replace("T", " "),
      step.state,
      step.state === "finished" ? count(step.reports) : "",
      step.noise ? figure(step.noise, 3) : "",
      step.moved ? figure(step.moved, 3) : "",
    ]),
  );
}

const JUDGE = {
  "to come": "will judge the finished model",
  running: "judge the model now",
  finished: "judged it, too few for a figure",
};

const WELL = { auc: "AUC", accuracy: "Accuracy" };

/**
 * The quality of the finished model, from devices that took no part in the training, or the date
 * from which it is known.
 */
function quality(answer, level) {
  const date = answer.date.replace("T", " ");
  if (!answer.calibration.length) {
    const share = `${figure(100 * answer.share, 2)}% of devices teach nothing and ${JUDGE[answer.state]}`;
    return [h("p", {}, `${share}: round of ${date}.`)];
  }
  const scores = ["auc", "accuracy"].flatMap((name) => {
    if (answer[name] === null) return [];
    const ends = `${figure(answer[`${name}_low`], 3)} to ${figure(answer[`${name}_high`], 3)}`;
    return [`${WELL[name]} ${figure(answer[name], 3)}, ${level} interval ${ends}: `];
  });
  return [
    h("p", {}, `${scores.join("")}measured on ${count(answer.reports)} devices that did not train it, in the round of ${date}.`),
    tabled(
      "Calibration",
      ["foretold", "people", "true", `${level} interval`],
      answer.calibration.map((bin) => [
        `${figure(bin.lowest, 3)} to ${figure(bin.highest, 3)}`,
        `${figure(100 * Math.min(Math.max(bin.people, 0), 1), 3)}%`,
        ...(bin.people > 0
          ? [figure(bin.estimate, 3), `${figure(bin.low, 3)} to ${figure(bin.high, 3)}`]
          : ["nobody", ""]),
      ]),
    ),
  ];
}

const roundsText = (answer) =>
  answer.number < 0
    ? `No round is over yet; the first state is due ${utc(answer.next)}.`
    : `${answer.kind}, after round ${answer.number} of ${answer.rounds}, of ${count(answer.reports)} reports` +
      (answer.finished ? ": all rounds are over." : `; the next state is due ${utc(answer.next)}.`);

/** Fills the section of a model. */
export async function showModel(name) {
  const answer = await ask(`/v1/models/${encodeURIComponent(name)}`);
  const parts = [h("p", {}, roundsText(answer))];
  if (answer.coefficients.length) {
    const largest = [...answer.coefficients].sort(
      (first, second) => Math.abs(second.coefficient) - Math.abs(first.coefficient),
    );
    const drawing = h("div"),
      table = h("table");
    parts.push(
      h("figure", {}, drawing),
      h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of coefficients" }, table),
      h(
        "p",
        { class: "muted" },
        "An interval covers the randomization and who took part. It does not cover that few rounds leave coefficients too small.",
      ),
    );
    const drawn = largest.slice(0, DRAWN).map((row) => ({
      value: printable(row.of_class ? `${row.of_class}: ${row.name}` : row.name, 60),
      estimate: row.coefficient,
      low: row.low,
      high: row.high,
      detected: row.low > 0 || row.high < 0,
    }));
    $("learned").replaceChildren(...parts);
    bars(drawing, drawn, "Coefficients with their intervals; the table has the same", {
      axis: "coefficient, per unit of the feature",
      format: figure,
      exact: d3.format(".4~g"),
    });
    const without = answer.kind === "softmax" ? [] : ["of_class"];
    await fillAnswer(table, "Coefficients", "model", answer, largest, { without });
  } else {
    $("learned").replaceChildren(...parts);
  }
  const level = `${figure(100 * answer.confidence, 4)}%`;
  if (answer.held_out) $("learned").append(...quality(answer.held_out, level));
  $("learned").append(rounds(answer.steps));
}
