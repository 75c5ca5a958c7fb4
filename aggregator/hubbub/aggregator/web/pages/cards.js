// A metric on the overview: its answer at a glance, asked for when the card comes into sight.
import { ask, before, count, figure, h, named, ofMeans, percent, shown } from "./shell.js";
import { spark, sparkLine } from "./charts.js";

const TOP = 3;
const EPOCHS = 14;

const seen = new IntersectionObserver(
  (entries) => {
    for (const one of entries.filter((entry) => entry.isIntersecting)) {
      seen.unobserve(one.target);
      one.target.dispatchEvent(new Event("seen"));
    }
  },
  { rootMargin: "200px" },
);

/** The card. */
export function card(metric) {
  const answer = h("div", { class: "answer", "aria-busy": "true" }, h("p", { class: "muted" }, "Loading …"));
  const made = h(
    "li",
    {},
    h(
      "a",
      { class: "card", href: `/metric?name=${encodeURIComponent(metric.name)}` },
      h("h2", {}, named(metric.name)),
      h("p", { class: "muted" }, shown(metric.description, 200)),
      answer,
      h(
        "p",
        { class: "muted" },
        h("span", { class: "number" }, count(metric.reports)),
        ` report${metric.reports === 1 ? "" : "s"}, ${promise(metric)}.`,
        before(metric),
      ),
      foot(metric),
    ),
  );
  made.addEventListener("seen", () => fill(answer, metric));
  seen.observe(made);
  return made;
}

/** What an answer reveals: of a crowd its central epsilon too, which the crowd's size promises. */
function promise(metric) {
  const central = metric.facts.find((fact) => fact.label === "central epsilon");
  const report = `each ε ${figure(metric.epsilon, 3)}`;
  return central ? `central ε ${shown(central.text, 20)} in the crowd, ${report} by itself` : report;
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

/** The answer; where there is none, why. */
async function fill(place, metric) {
  try {
    place.replaceChildren(...(await answered(metric)));
  } catch (error) {
    place.replaceChildren(h("p", { class: "muted" }, why(metric, error)));
  }
  place.setAttribute("aria-busy", "false");
}

function why(metric, error) {
  switch (error.title) {
    case "BatchTooSmall":
    case "TooFewEpochs":
      return tooFew(metric);
    default:
      return shown(error.message, 120);
  }
}

const tooFew = (metric) =>
  metric.until_first_batch
    ? `${shown(metric.until_first_batch, 400)}.`
    : `Too few reports yet: an answer takes ${count(metric.min_batch)}.`;

/** How far a model has come. Round 0 tells where columns lie, and teaches no weight. */
function learned({ number, rounds, finished, held_out: judged }) {
  if (finished) {
    const good = [
      ["AUC", judged?.auc],
      ["accuracy", judged?.accuracy],
    ].flatMap(([name, share]) => (share == null ? [] : [`, of ${name} ${figure(share, 3)}`]));
    return `A finished model${good.join("")}: all ${rounds} rounds are over.`;
  }
  if (number < 1) return `A model; none of its ${rounds} rounds is over yet.`;
  return `A model, after round ${number} of ${rounds}.`;
}

async function answered(metric) {
  if (metric.kind === "model") {
    return [h("p", { class: "muted" }, learned(await ask(`/v1/models/${encodeURIComponent(metric.name)}`)))];
  }
  if (!metric.reports) return [h("p", { class: "muted" }, tooFew(metric))];
  if (metric.candidates === 0) {
    return [h("p", { class: "muted" }, "Over strings: say which to look for."), reports(metric)];
  }
  const path = `/v1/metrics/${encodeURIComponent(metric.name)}`;
  const found = await ask(`${path}/estimates`, { number: TOP, order: metric.kind === "vector" ? "listed" : "rank" });
  const mean = found.kind === "mean" ? found.values[0] : found.mean;
  const parts = mean
    ? [ofMean(metric, mean, found)]
    : found.kind === "vector"
    ? found.values.map((one) => ofMean(metric, one, found, one.value))
    : [
        h(
          "dl",
          { class: "values" },
          found.values.map((one) => ofValue(one, found)),
        ),
      ];
  parts.push(...(await history(path, metric, found.kind)));
  return parts;
}

/** Whether an estimate can be, as its interval does: chance may put one below 0 or above all. */
const possible = ({ estimate, low, high }) => low <= estimate && estimate <= high;

function ofMean(metric, mean, found, name = "mean") {
  const level = percent(found.confidence, 0);
  const unit = metric.unit ? ` ${shown(metric.unit)}` : "";
  const told = possible(mean) ? [h("b", {}, figure(mean.estimate) + unit), " "] : [];
  const ends = `${figure(mean.low)} to ${figure(mean.high)}${told.length ? "" : unit}`;
  return h(
    "p",
    { title: `mean with its ${level} interval` },
    named(name, 40),
    " ",
    told,
    h("span", { class: "muted" }, ends),
  );
}

function ofValue(one, found) {
  const [low, high] = [one.low, one.high].map((end) => percent(end / found.reports));
  return h(
    "div",
    { title: `share of the reports with its ${percent(found.confidence, 0)} interval` },
    h("dt", {}, named(one.value, 40)),
    h(
      "dd",
      {},
      possible(one) ? [h("b", {}, percent(one.share)), " "] : [],
      h("span", { class: "muted" }, `${low} to ${high}`),
    ),
  );
}

/** What changed since the epoch before, and a line of the first value or of the mean. */
async function history(path, metric, kind) {
  const enough = metric.epochs.filter((one) => one.reports >= metric.min_batch);
  if (enough.length < 2) return [reports(metric)];
  const found = await ask(`${path}/trend`, { last: EPOCHS, number: 1 });
  const [series] = found.series;
  const parts = [];
  if (series?.points.length > 1) {
    const format = found.kind === "values" ? percent : figure;
    const said = series.points.map((one) => `${one.date} ${format(one.share)}`).join(", ");
    const drawing = h("div");
    sparkLine(drawing, series.points, `${shown(series.value)} by epoch: ${said}`);
    const [from, to] = [series.points[0].date, series.points.at(-1).date];
    const line = `“${shown(series.value, 40)}”, ${from} to ${to}`;
    parts.push(drawing, h("p", { class: "muted" }, line));
  }
  if (enough.filter((one) => one.closed).length > 1) {
    try {
      parts.push(change(await ask(`${path}/compare`, { number: 1 }), kind));
    } catch (error) {
      if (error.title !== "TooFewEpochs") throw error; // of whole periods there may be fewer
    }
  }
  return parts;
}

function change(compared, kind) {
  const { after_dates: after, before_dates: before } = compared;
  const [first] = compared.values;
  const when = `${after} against ${before}`;
  if (!first?.changed) return h("p", { class: "muted" }, `no change beyond chance, ${when}`);
  const mean = ofMeans({ kind });
  const format = mean ? figure : (number) => (100 * number).toFixed(1);
  const points = mean ? "" : " points";
  const sign = first.difference > 0 ? "+" : "";
  return h(
    "p",
    { class: "muted" },
    h("b", {}, `${shown(first.value, 40)} ${sign}${format(first.difference)}${points}`),
    ` (${format(first.low)} to ${format(first.high)}), ${when}`,
  );
}

/** How many reports each epoch had; of one alone that is said already. */
function reports(metric) {
  if (metric.epochs.length < 2) return "";
  const drawing = h("div");
  const said = metric.epochs.slice(-5).map((one) => `${one.date} ${count(one.reports)}`);
  const label = `Reports in the last ${metric.epochs.length} epochs: ${said.join(", ")}`;
  spark(drawing, metric.epochs.map((one) => one.reports), label);
  return drawing;
}
