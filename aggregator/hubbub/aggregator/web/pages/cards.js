// A metric's card on the overview: a short answer, requested when the card becomes visible.
import { ask, asSentence, atMost, errorOf, noticeText, count, figure, h, measured, nameElement, ofMeans, percent, printable } from "./shell.js";
import { spark, sparkLine } from "./charts.js";
import { drawnPercentiles, endsOf, nameOf } from "./percentiles.js";

const TOP = 3;
const EPOCHS = 14;

const observer = new IntersectionObserver(
  (entries) => {
    for (const visible of entries.filter((entry) => entry.isIntersecting)) {
      observer.unobserve(visible.target);
      visible.target.dispatchEvent(new Event("seen"));
    }
  },
  { rootMargin: "200px" },
);

/** The card of a metric. */
export function card(metric) {
  const answer = h("div", { class: "answer", "aria-busy": "true" }, h("p", { class: "muted" }, "Loading …"));
  const element = h(
    "li",
    {},
    h(
      "a",
      { class: "card", href: `/metric?name=${encodeURIComponent(metric.name)}` },
      h("h2", {}, nameElement(metric.name)),
      h("p", { class: "muted" }, printable(metric.description, 200)),
      answer,
      h(
        "p",
        { class: "muted" },
        h("span", { class: "number" }, count(metric.reports)),
        ` report${metric.reports === 1 ? "" : "s"}, ${promise(metric)}.`,
        noticeText(metric),
      ),
      foot(metric),
    ),
  );
  element.addEventListener("seen", () => fill(answer, metric));
  observer.observe(element);
  return element;
}

/** What a report reveals: its epsilon and, for a metric with a crowd, the central epsilon too. */
function promise(metric) {
  const central = metric.facts.find((fact) => fact.label === "central epsilon");
  const report = `each ε ${atMost(metric.epsilon, 3)}`;
  return central ? `central ε ${printable(central.text, 60)} in the crowd, ${report} by itself` : report;
}

function foot(metric) {
  const open = metric.epochs.length && !metric.epochs.at(-1).closed;
  const chips = [
    metric.waiting ? ["chip", `${count(metric.waiting)} waiting`] : null,
    metric.withheld ? ["chip", `${count(metric.withheld)} withheld`] : null,
    metric.reports === 0
      ? ["chip", "nothing yet"]
      : [open ? "chip" : "chip good", open ? "newest epoch open" : "newest epoch final"],
  ];
  return h(
    "p",
    { class: "foot" },
    chips.filter(Boolean).map(([kind, text]) => h("span", { class: kind }, text)),
  );
}

/** Fills a card with the answer, or with the reason why there is none. */
async function fill(place, metric) {
  try {
    place.replaceChildren(...(await answerTexts(metric)));
  } catch (error) {
    place.replaceChildren(h("p", { class: "muted" }, reason(metric, error)));
  }
  place.setAttribute("aria-busy", "false");
}

function reason(metric, error) {
  switch (error.title) {
    case "BatchTooSmall":
    case "TooFewEpochs":
      return tooFewText(metric);
    default:
      return printable(error.message, 120);
  }
}

const tooFewText = (metric) =>
  metric.until_first_batch
    ? asSentence(metric.until_first_batch)
    : `Too few reports yet: an answer needs ${count(metric.min_batch)}.`;

/** A model's progress. Round 0 finds where the columns lie and changes no weight. */
function progress({ number, rounds, finished, held_out: heldOut }) {
  if (finished) {
    const scores = [
      ["AUC", heldOut?.auc],
      ["accuracy", heldOut?.accuracy],
    ].flatMap(([name, share]) => (share == null ? [] : [`, of ${name} ${figure(share, 3)}`]));
    return `A finished model${scores.join("")}: all ${rounds} rounds are over.`;
  }
  if (number < 1) return `A model; none of its ${rounds} rounds is over yet.`;
  return `A model, after round ${number} of ${rounds}.`;
}

async function answerTexts(metric) {
  if (metric.kind === "model") {
    return [h("p", { class: "muted" }, progress(await ask(`/v1/models/${encodeURIComponent(metric.name)}`)))];
  }
  if (!metric.reports) return [h("p", { class: "muted" }, tooFewText(metric))];
  if (metric.candidates === 0) {
    return [h("p", { class: "muted" }, "Over strings: name the strings to look for."), reports(metric)];
  }
  const path = `/v1/metrics/${encodeURIComponent(metric.name)}`;
  const answer = await ask(`${path}/estimates`, { number: TOP, order: metric.kind === "vector" || metric.figures ? "listed" : "rank" });
  const mean = answer.kind === "mean" ? answer.values[0] : answer.mean;
  const parts = answer.percentiles.length
    ? drawnPercentiles(answer).map((row) => ofPercentile(metric, row, answer))
    : mean
    ? [ofMean(metric, mean, answer)]
    : answer.kind === "vector"
    ? answer.values.map((value) => ofMean(metric, value, answer, value.value))
    : [
        h(
          "dl",
          { class: "values" },
          answer.values.map((value) => ofValue(value, answer)),
        ),
      ];
  parts.push(...(await history(path, metric, answer)));
  return parts;
}

/** Whether an estimate lies in its own interval; chance may move it below 0 or above the total. */
const isPossible = ({ estimate, low, high }) => low <= estimate && estimate <= high;

function ofMean(metric, mean, answer, name = "mean") {
  const level = percent(answer.confidence, 0);
  const unit = metric.unit ? ` ${printable(metric.unit)}` : "";
  const text = (number, end) => measured(number, mean.stderr, end);
  const estimate = isPossible(mean) ? [h("b", {}, text(mean.estimate) + unit), " "] : [];
  const ends = `${text(mean.low, "low")} to ${text(mean.high, "high")}${estimate.length ? "" : unit}`;
  return h(
    "p",
    { title: `mean with its ${level} interval` },
    nameElement(name, 40),
    " ",
    estimate,
    h("span", { class: "muted" }, ends),
  );
}

function ofPercentile(metric, row, answer) {
  const unit = metric.unit ? ` ${printable(metric.unit)}` : "";
  return h(
    "p",
    { title: `percentile with its ${percent(answer.confidence, 0)} interval` },
    `${nameOf(row)} `,
    h("b", {}, measured(row.estimate, errorOf(row)) + unit),
    " ",
    h("span", { class: "muted" }, endsOf(row)),
  );
}

function ofValue(row, answer) {
  const [low, high] = [row.low, row.high].map((end) => percent(end / answer.reports));
  return h(
    "div",
    { title: `share of the reports with its ${percent(answer.confidence, 0)} interval` },
    h("dt", {}, nameElement(row.value, 40)),
    h(
      "dd",
      {},
      isPossible(row) ? [h(row.detected ? "b" : "span", {}, percent(row.share)), " "] : [],
      h("span", { class: "muted" }, `${low} to ${high}`),
    ),
  );
}

/**
 * The change since the previous epoch, and a line over the last epochs: of the first percentile on
 * the card, of a boolean's "true", else of the most frequent value or the mean.
 */
async function history(path, metric, estimates) {
  const largeEpochs = metric.epochs.filter((epoch) => epoch.reports >= metric.min_batch);
  if (largeEpochs.length < 2) return [reports(metric)];
  const drawn = largeEpochs.slice(-EPOCHS);
  const epochs = `${drawn[0].epoch}..${drawn.at(-1).epoch}`;
  const percentile = drawnPercentiles(estimates).slice(0, 1).map((row) => row.percentile);
  const isBoolean = estimates.values.map(({ value }) => value).sort().join() === "false,true";
  const value = isBoolean ? "true" : "";
  const number = percentile.length || isBoolean ? "" : 1;
  const answer = await ask(`${path}/trend`, { epochs, percentile, value, number });
  const [series] = answer.series;
  const parts = [];
  if (series?.points.length > 1) {
    const format = answer.kind === "values" ? percent : figure;
    const summary = series.points.map((point) => `${point.date} ${format(point.share)}`).join(", ");
    const drawing = h("div");
    sparkLine(drawing, series.points, `${printable(series.value)} by epoch: ${summary}`);
    const [from, to] = [series.points[0].date, series.points.at(-1).date];
    const line = `“${printable(series.value, 40)}”, ${from} to ${to}`;
    parts.push(drawing, h("p", { class: "muted" }, line));
  }
  if (largeEpochs.filter((epoch) => epoch.closed).length > 1) {
    try {
      parts.push(change(await ask(`${path}/compare`, { number: 1, percentile, find: value }), estimates.kind));
    } catch (error) {
      if (error.title !== "TooFewEpochs") throw error; // there may be fewer than two whole periods
    }
  }
  return parts;
}

function change(comparison, kind) {
  const { after_dates: after, before_dates: before } = comparison;
  const [percentile] = comparison.percentiles;
  const [first] = percentile
    ? [{ ...percentile, value: nameOf(percentile), changed: percentile.moved, stderr: errorOf(percentile) }]
    : comparison.values;
  const period = `${after} against ${before}`;
  if (!first?.changed) return h("p", { class: "muted" }, `no change beyond chance, ${period}`);
  const inOwnUnit = percentile || ofMeans({ kind });
  const format = (number, end) => (inOwnUnit ? measured(number, first.stderr, end) : (100 * number).toFixed(1));
  const points = inOwnUnit ? "" : " points";
  const sign = first.difference > 0 ? "+" : "";
  return h(
    "p",
    { class: "muted" },
    h("b", {}, `${printable(first.value, 40)} ${sign}${format(first.difference)}${points}`),
    ` (${format(first.low, "low")} to ${format(first.high, "high")}), ${period}`,
  );
}

/** A chart of the number of reports of each epoch; a single epoch's number is already shown. */
function reports(metric) {
  if (metric.epochs.length < 2) return "";
  const drawing = h("div");
  const counts = metric.epochs.slice(-5).map((epoch) => `${epoch.date} ${count(epoch.reports)}`);
  const label = `Reports in the last ${metric.epochs.length} epochs: ${counts.join(", ")}`;
  spark(drawing, metric.epochs.map((epoch) => epoch.reports), label);
  return drawing;
}
