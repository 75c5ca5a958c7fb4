// Percentiles of metrics of numbers with buckets: lines across the bars, a table, and a trend.
/* global d3 */
import { ask, errorOf, inFull, inUnit, measured, percent, figure } from "./shell.js";
import { lines } from "./charts.js";
import { fillAnswer } from "./tables.js";

const DRAWN = [50, 95];
export const nameOf = ({ percentile }) => `p${percentile}`;

/** An interval in words: if it reaches an end of the range, the truth may lie beyond that end. */
export function endsOf({ low, high, reaches }) {
  if (reaches === "both") return "not known";
  const [first, last] = [inFull(low, "low"), inFull(high, "high")];
  if (reaches === "low") return `up to ${last}`;
  return `${first} ${reaches === "high" ? "or more" : `to ${last}`}`;
}

/** The position of a number among the bars of its parts, in bars from the top. */
function down(number, edges) {
  const part = Math.min(Math.max(d3.bisectRight(edges, number) - 1, 0), edges.length - 2);
  return part + (number - edges[part]) / (edges[part + 1] - edges[part]);
}

const inWords = (row) => `${nameOf(row)} ${measured(row.estimate, errorOf(row))} (${endsOf(row)})`;

/** The median and the 95th percentile; if the answer lacks either, its first and its last. */
export const drawnPercentiles = ({ percentiles }) => {
  const usual = percentiles.filter(({ percentile }) => DRAWN.includes(percentile));
  return usual[1] ? usual : percentiles.filter((_, place) => !place || !percentiles[place + 1]);
};

/** The drawn percentiles in words; "" if there are none. */
export const textOf = (holder) => drawnPercentiles(holder).map(inWords).join(", ");

/** The drawn percentiles with their intervals, as lines across the bars. */
export const acrossBars = (answer) =>
  drawnPercentiles(answer).map((row) => ({
    name: inWords(row),
    short: nameOf(row),
    at: down(row.estimate, answer.edges),
    low: down(row.low, answer.edges),
    high: down(row.high, answer.edges),
  }));

/** Shows all percentiles as a table; `place` stays empty if there are none. */
export async function showPercentiles(place, answer) {
  place.parentElement.hidden = !answer.percentiles.length;
  const rows = answer.percentiles.map((row) => ({
    value: nameOf(row),
    number: row.estimate,
    number_low: row.low,
    number_high: row.high,
    reaches: row.reaches,
  }));
  const title = `${inUnit("Percentiles", answer)}: ends of intervals are edges of buckets`;
  const without = ["share", "share_low", ...(rows.some((row) => row.reaches) ? [] : ["reaches"])];
  await fillAnswer(place, title, "percentiles", answer, rows, { without });
}

/** Shows the trend of these percentiles, with a legend. */
export async function percentileTrend(section, path, range, percentiles) {
  const answer = await ask(`${path}/trend`, { ...range, percentile: percentiles.map(({ percentile }) => percentile) });
  const begins = new Map(answer.epochs.map((epoch) => [epoch.epoch, new Date(epoch.begins)]));
  const series = answer.series.map(({ value, points }) => ({
    value,
    points: points.map((point) => ({ ...point, time: begins.get(point.epoch) })),
  }));
  const names = series.map(({ value }) => value).join(" and ");
  for (const [place, span] of section.nextElementSibling.querySelectorAll("span").entries()) {
    span.hidden = !series[place];
    span.textContent = series[place]?.value;
  }
  lines(section, series, `${names} by epoch with ${percent(answer.confidence, 0)} bands`, {
    axis: `${inUnit(names, answer)}`,
    format: figure,
    exact: inFull,
  });
}
