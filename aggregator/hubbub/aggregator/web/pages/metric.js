// One metric: estimates with their intervals, the trend, a comparison, what a report reveals.
/* global d3 */
import { $, ask, count, download, figure, h, named, percent, ready, shown, tell } from "./shell.js";
import { lines } from "./charts.js";
import { compare, offerComparison } from "./compare.js";
import { showEstimates, showFlags, showPages } from "./estimates.js";
import { privacyCard } from "./privacy.js";

const ROWS = 100;
const MAX_RANGES = 1024;
const RANGES = [
  ["newest", "newest epoch"],
  ["last:7d", "last 7 days"],
  ["last:30d", "last 30 days"],
  ["last:52w", "last year"],
  ["all", "all"],
  ["custom", "other …"],
];

const parameters = new URLSearchParams(location.search);
const name = parameters.get("name") ?? "";
const controls = $("controls").elements;
const path = `/v1/metrics/${encodeURIComponent(name)}`;
let metric = null;

/** What the controls say: parameters of a question, and its candidates for strings. */
function question() {
  const range = controls.range.value;
  const asked = { confidence: controls.confidence.value };
  if (range.startsWith("last:")) asked.last = range.slice(5);
  else asked.epochs = range === "custom" ? controls.epochs.value : range;
  const lines = controls.candidates.value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  return { asked, body: metric.kind === "strings" ? { candidates: [...new Set(lines)] } : null };
}

async function estimates(first = 0) {
  const { asked, body } = question();
  const paged = { ...asked, first, number: ROWS, order: "rank" };
  if (metric.kind === "ranges") Object.assign(paged, { number: MAX_RANGES, order: "listed" });
  const found = await ask(`${path}/estimates`, paged, body);
  showFlags(found, first);
  await showEstimates(found, {
    first,
    hourly: metric.epoch_length === "hour",
    consistent: wantsConsistent(),
  });
  showPages(found, first, paged.number, estimates);
}

const wantsConsistent = () => controls.shown.value === "consistent" && metric.kind !== "mean";

async function trend() {
  const { asked, body } = question();
  const range = asked.epochs === "newest" ? { confidence: asked.confidence, epochs: "all" } : asked;
  const found = await ask(`${path}/trend`, { ...range, number: 5 }, body);
  const begins = new Map(found.epochs.map((one) => [one.epoch, new Date(one.begins)]));
  const series = found.series.map((one) => ({
    value: one.value,
    points: one.points.map((point) => ({ ...point, time: begins.get(point.epoch) })),
  }));
  const mean = found.kind !== "values";
  const format = mean ? figure : percent;
  const newest = series
    .map((one) => `${shown(one.value)} ${format(one.points.at(-1)?.share ?? 0)}`)
    .join(", ");
  const level = percent(found.confidence, 0);
  lines(
    $("trend"),
    series,
    `${mean ? "Mean" : "Share"} by epoch with ${level} bands; in the newest: ${newest}`,
    mean ? d3.format("~g") : d3.format(".0%"),
  );
  const small = found.epochs.filter((one) => one.reports < found.min_batch).length;
  $("legend").replaceChildren(
    ...series.map((one, place) =>
      h("span", { class: `s${Math.min(place, 5)}` }, named(one.value, 40)),
    ),
    h("em", {}, "Of the population that reports are from: bands hold who happened to report too."),
    small ? h("em", {}, `${small} epochs below the minimum batch are left out`) : "",
  );
}

function takeAway() {
  const { asked, body } = question();
  const range = asked.last
    ? `--last ${asked.last}`
    : asked.epochs === "newest"
      ? ""
      : `--epochs ${asked.epochs}`;
  const strings = body ? " --candidates strings.txt" : "";
  $("commands").textContent =
    `hubbub query ${shown(name)} ${range}${strings}\nhubbub trend ${shown(name)} ${range}${strings}\n\n` +
    `import hubbub.notebook\nhubbub.notebook.connect("${location.origin}").estimates("${shown(name)}")`;
  const buttons = ["csv", "parquet"].map((format) => {
    const button = h(
      "button",
      { type: "button", class: "quiet" },
      `Download ${format === "csv" ? "CSV" : "Parquet"}`,
    );
    button.addEventListener("click", () =>
      download(`${path}/export`, { ...asked, format }, `${name}.${format}`).catch((error) =>
        tell($("flags"), error),
      ),
    );
    return button;
  });
  $("take").replaceChildren(...(body ? [] : buttons.flatMap((one) => [one, " "])));
}

async function all() {
  $("main").setAttribute("aria-busy", "true");
  try {
    if (metric.kind === "strings" && !question().body.candidates.length) {
      $("flags").replaceChildren(
        h(
          "p",
          { class: "note" },
          "This metric is over strings: nobody listed them before. " +
            "Say which to look for, one a line, and ask.",
        ),
      );
    } else {
      await estimates();
      await trend();
    }
    takeAway();
  } catch (error) {
    tell($("flags"), error);
  }
  ready();
}

async function begin() {
  document.title = `hubbub: ${shown(name)}`;
  $("name").replaceChildren(named(name));
  const detail = await ask(path);
  metric = detail.metric;
  $("description").textContent = shown(metric.description, 400);
  $("facts").replaceChildren(
    ...[
      metric.mechanism,
      `ε ${figure(metric.epsilon, 4)} a report`,
      `${count(metric.reports)} reports in all`,
      ...metric.facts.map((fact) => shown(`${fact.label} ${fact.text}`, 200)),
    ].map((fact) => h("span", { class: "chip" }, fact)),
  );
  controls.range.replaceChildren(...RANGES.map(([value, label]) => h("option", { value }, label)));
  controls.range.addEventListener("change", () => {
    $("custom").hidden = controls.range.value !== "custom";
  });
  $("candidates").hidden = metric.kind !== "strings";
  $("shown").hidden = metric.kind === "mean";
  controls.file.addEventListener("change", async () => {
    controls.candidates.value = await controls.file.files[0].text();
  });
  $("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    all();
  });
  controls.shown.addEventListener("change", all);
  controls.confidence.addEventListener("change", all);
  privacyCard($("card"), detail);
  offerComparison(metric, () => compare(path, question()));
  await all();
}

begin().catch((error) => {
  tell($("flags"), error);
  ready();
});
