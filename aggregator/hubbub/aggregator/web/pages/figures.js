// The figures of a metric whose reports devices compute from their past: conversions, a rate,
// numbers of active devices, shares that return.
/* global d3 */
import { $, ask, noticeText, notesText, h, inFull, inUnit, ofMeans, percent, figure } from "./shell.js";
import { bars } from "./charts.js";
import { showState } from "./states.js";
import { fillAnswer } from "./tables.js";

// Up to this many rows are drawn as bars; more rows appear only in the table.
const DRAWN = 60;
const AXES = {
  funnel: "share that went on",
  rate: "rate",
  activity: "devices",
  retention: "share that came back",
};

/**
 * The epochs for figures: activity and retention need several epochs together, and the newest alone
 * has too few.
 */
export const epochsOfFigures = ({ last, epochs }) => (last ? { last } : epochs === "newest" ? {} : { epochs });

/** Fills the section of the metric's figures, if it has any. */
export async function showFigures(path, { figures, public: fields }, field, query) {
  if (!figures) return;
  const { confidence } = query;
  const parameters = fields.length && field ? { by: field } : {};
  try {
    await show(await ask(`${path}/figures`, { ...epochsOfFigures(query), ...parameters, confidence }));
  } catch (error) {
    // In its first week, a retention metric has estimates but no share yet.
    if (error.status !== 400 && error.title !== "TooFewEpochs") throw error;
    showState($("figured"), error, {});
  }
}

async function show(answer) {
  const drawing = h("div"),
    table = h("table");
  const bounded = answer.values.filter((row) => row.estimate !== null && row.high !== null);
  const isDrawn = bounded.length && bounded.length <= DRAWN;
  $("figured").replaceChildren(
    h("p", { class: "muted" }, `${notesText(answer)}${noticeText(answer)}`),
    isDrawn ? h("figure", {}, drawing) : "",
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of figures" }, table),
  );
  const areMeans = ofMeans(answer);
  if (isDrawn) {
    const rowName = (row) => [row.part, row.figure, areMeans || answer.kind === "retention" ? row.dates : ""];
    bars(
      drawing,
      bounded.map((row) => ({ ...row, value: rowName(row).filter(Boolean).join(", "), detected: !row.note })),
      "Figures with their intervals; the table has the same numbers",
      {
        axis: inUnit(AXES[answer.kind], answer),
        format: areMeans ? figure : d3.format("~%"),
        exact: areMeans ? inFull : (share) => percent(share, 2),
        most: areMeans ? null : 1,
      },
    );
  }
  const without = [...(answer.by ? [] : ["part"]), ...(answer.values.some((row) => row.note) ? [] : ["note"])];
  await fillAnswer(table, "Figures", "figures", answer, answer.values, { without });
}
