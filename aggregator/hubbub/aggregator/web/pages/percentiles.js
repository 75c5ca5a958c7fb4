// Percentiles of numbers in parts: across the bars, as a table, and over time.
/* global d3 */
import { ask, figure, inUnit, percent } from "./shell.js";
import { lines } from "./charts.js";
import { fillAnswer } from "./tables.js";

const DRAWN = [50, 95];
export const nameOf = ({ percentile }) => `p${percentile}`;

/** An interval in words: an end of the range is no end of what may be true. */
function ends({ low, high, reaches }) {
  if (reaches === "both") return "not known";
  if (reaches === "low") return `up to ${figure(high, 4)}`;
  return `${figure(low, 4)} ${reaches === "high" ? "or more" : `to ${figure(high, 4)}`}`;
}

/** How far down the bars of its parts a number is, in bars. */
function down(number, edges) {
  const part = Math.min(Math.max(d3.bisectRight(edges, number) - 1, 0), edges.length - 2);
  return part + (number - edges[part]) / (edges[part + 1] - edges[part]);
}

const inWords = (row) => `${nameOf(row)} ${figure(row.estimate, 4)} (${ends(row)})`;
const drawnPercentiles = ({ percentiles }) => percentiles.filter(({ percentile }) => DRAWN.includes(percentile));

/** The two that are drawn, in words; "" where there are none. */
export const textOf = (holder) => drawnPercentiles(holder).map(inWords).join(", ");

/** The median and the 95th, with their intervals, where each lies among the bars of all parts. */
export const acrossBars = (answer) =>
  drawnPercentiles(answer).map((row) => ({
    name: inWords(row),
    at: down(row.estimate, answer.edges),
    low: down(row.low, answer.edges),
    high: down(row.high, answer.edges),
  }));

/** All of them as a table; `place` is empty where there are none. */
export async function showPercentiles(place, answer) {
  place.parentElement.hidden = !answer.percentiles.length;
  const rows = answer.percentiles.map((row) => ({
    value: nameOf(row),
    number: row.estimate,
    number_low: row.low,
    number_high: row.high,
    reaches: row.reaches,
  }));
  const title = `${inUnit("Percentiles", answer)}: ends of intervals are edges of parts`;
  const without = ["share", "share_low", ...(rows.some((row) => row.reaches) ? [] : ["reaches"])];
  await fillAnswer(place, title, "percentiles", answer, rows, { without });
}

/** The same two epoch by epoch. Of what has none, nothing. */
export async function percentileTrend(section, path, range) {
  const answer = await ask(`${path}/trend`, { ...range, percentile: DRAWN });
  const begins = new Map(answer.epochs.map((epoch) => [epoch.epoch, new Date(epoch.begins)]));
  const series = answer.series.map(({ value, points }) => ({
    value,
    points: points.map((point) => ({ ...point, time: begins.get(point.epoch) })),
  }));
  const names = series.map(({ value }) => value).join(" and ");
  lines(section, series, `${names} by epoch with ${percent(answer.confidence, 0)} bands`, {
    axis: `${inUnit(names, answer)}`,
    format: d3.format("~g"),
    exact: figure,
  });
}
