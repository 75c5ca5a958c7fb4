// The effects of an experiment's arms on a metric, which may be viewed at any time: effects, sizes
// of arms, a verdict.
import { $, ask, noticeText, h, inFull, inUnit, printable, figure } from "./shell.js";
import { bars } from "./charts.js";
import { points } from "./compare.js";
import { fillAnswer, inPoints, signed } from "./tables.js";

const LONGEST = 4000;

/** Fills the section of the metric's experiment, if it measures one. */
export async function showExperiment({ name, experiment, unit }, { confidence }) {
  if (!experiment) return;
  const answer = await ask(`/v1/experiments/${encodeURIComponent(experiment)}`, { confidence });
  const drawing = h("div"),
    table = h("table");
  const rows = answer.values.filter((row) => row.metric === name);
  const others = answer.arms.filter(({ metric }) => metric !== name);
  const lines = answer.verdict.split("\n").filter((line) => !others.some(({ metric }) => line.startsWith(`${metric}, `)));
  $("tried").replaceChildren(
    ...lines.map((line) => h("p", { class: answer.ratio_fits ? null : "note bad" }, printable(line, LONGEST))),
    h("p", { class: "muted" }, `${printable(answer.sizes, LONGEST)}. All intervals of all looks hold together.${noticeText(answer)}`),
    rows.length ? h("figure", {}, drawing) : "",
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of effects" }, table),
  );
  if (!rows.length) return;
  const shares = rows[0].of_share;
  const drawn = rows.map((row) => ({
    value: `${row.arm}: ${row.measure}`,
    estimate: row.difference,
    low: row.low,
    high: row.high,
    detected: row.shown,
  }));
  bars(drawing, drawn, "Effects with their intervals; the table has the same numbers", {
    axis: shares ? `effect beside ${answer.control}, in percentage points` : inUnit(`effect beside ${answer.control}`, { unit }),
    format: shares ? points : figure,
    exact: shares ? (share) => `${inPoints(share)} points` : (number, end) => signed(number, (effect) => inFull(effect, end)),
  });
  await fillAnswer(table, `Effects beside ${answer.control}`, "experiment", answer, answer.values);
}
