// One metric: estimates with their intervals, the trend, a comparison, what a report reveals.
/* global d3 */
import { $, ask, count, download, figure, fill, h, named, percent, ready, shown, tell } from "./shell.js";
import { bars, lines } from "./charts.js";
import { compare, offerComparison } from "./compare.js";
import { privacyCard } from "./privacy.js";

const ROWS = 100;
const SHOWN = 25;
const RANGES = [["newest", "newest epoch"], ["last:7d", "last 7 days"], ["last:30d", "last 30 days"], ["last:52w", "last year"], ["all", "all"], ["custom", "other …"]];

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
  const lines = controls.candidates.value.split("\n").map((line) => line.trim()).filter(Boolean);
  return { asked, body: metric.kind === "strings" ? { candidates: [...new Set(lines)] } : null };
}

const unit = (kind) => (kind === "mean" ? (number) => figure(number) : (number) => count(number));

function showFlags(found) {
  const flags = [];
  if (found.findings.length) {
    flags.push(h("p", { class: "note bad" }, "Not from honest reports alone (p ≤ " + found.plausibility.toExponential(0) + "): " + found.findings.join("; ")));
  }
  const waiting = found.waiting ? ` ${count(found.waiting)} reports wait at the shuffler.` : "";
  flags.push(found.final ? h("p", { class: "note good" }, "Final: these epochs take no more reports.")
    : h("p", { class: "note" }, "Not final: reports of these epochs are still taken." + waiting));
  if (found.withheld) flags.push(h("p", { class: "note" }, `${count(found.withheld)} reports were withheld: too few to hide in a crowd.`));
  if (found.others) flags.push(h("p", { class: "note" }, `Strings that you did not list: ${count(found.others.estimate)} reports, ${count(found.others.low)} to ${count(found.others.high)}.`));
  if (found.misfit !== null && found.misfit < 1e-3) {
    flags.push(h("p", { class: "note bad" }, `The strings asked for do not explain the totals (p = ${found.misfit.toExponential(0)}): list more of them.`));
  }
  if (found.kind !== "mean" && !found.values.some((one) => one.detected)) {
    flags.push(h("p", { class: "note" }, "Nothing stands out from zero: ask for more epochs, or wait for more reports."));
  }
  $("flags").replaceChildren(...flags);
}

function showEstimates(found) {
  const consistent = controls.shown.value === "consistent" && found.kind !== "mean";
  const format = unit(found.kind);
  const [first, last] = [found.since.slice(0, 10), new Date(new Date(found.until) - 1).toISOString().slice(0, 10)];
  const hour = metric.epoch_length === "hour" && found.epochs.length === 1 ? ` ${found.since.slice(11, 16)}` : "";
  const range = first === last ? first + hour : `${first} to ${last}`;
  $("answer").textContent = `${count(found.reports)} reports, ${range}; ` + (found.updated ? `last counted ${found.updated.replace("T", " ").replace("Z", " UTC")}` : "");
  const ordered = found.kind === "ranges" ? found.values : [...found.values].sort((a, b) => a.rank - b.rank);
  const drawn = ordered.slice(0, SHOWN).map((one) => ({ ...one, estimate: consistent ? one.consistent : one.estimate }));
  const level = percent(found.confidence, 0);
  bars($("bars"), drawn, `${found.kind === "mean" ? "The mean" : "Reports of each value"} with ${level} intervals; the table has the same numbers`, found.kind === "mean" ? d3.format("~g") : d3.format("~s"));
  $("bars-said").textContent = (consistent ? "Consistent: post-processed, never below zero, a better picture and biased for a single value. The intervals are those of the unbiased estimates. " : "") +
    `Whiskers are ${level} intervals; pale bars do not stand out from zero.` + (found.total > drawn.length ? ` The ${drawn.length} largest of ${count(found.total)}.` : "") +
    (found.mean ? ` Mean ${figure(found.mean.estimate)}, ${figure(found.mean.low)} to ${figure(found.mean.high)}.` : "");
  const header = ["value", "estimate", "std. error", `${level} interval`, "share", "rank", "detected", ...(found.kind === "mean" ? [] : ["consistent"])];
  fill($("table"), `All numbers in ${found.kind === "mean" ? "the metric’s own unit" : "reports"}`, header, ordered.map((one) => [
    named(one.value, 200), format(one.estimate), format(one.stderr), `${format(one.low)} to ${format(one.high)}`, percent(one.share), String(one.rank),
    h("td", { class: one.detected ? "yes" : "" }, one.detected ? "yes" : ""), ...(one.consistent === null ? [] : [format(one.consistent)])]));
}

function showPages(found, first) {
  const go = (label, to) => {
    const button = h("button", { type: "button", class: "quiet" }, label);
    button.addEventListener("click", () => estimates(to));
    return button;
  };
  const parts = found.total <= ROWS ? [] : [`${count(first + 1)} to ${count(first + found.values.length)} of ${count(found.total)}`,
    first > 0 ? go("Before", Math.max(0, first - ROWS)) : null, first + ROWS < found.total ? go("More", first + ROWS) : null];
  $("pages").replaceChildren(...parts.filter(Boolean));
}

async function estimates(first = 0) {
  const { asked, body } = question();
  const order = metric.kind === "ranges" ? "listed" : "rank";
  const found = await ask(`${path}/estimates`, { ...asked, first, number: ROWS, order }, body);
  showFlags(found);
  showEstimates(found);
  showPages(found, first);
  return found;
}

async function trend() {
  const { asked, body } = question();
  const range = asked.epochs === "newest" ? { confidence: asked.confidence, epochs: "all" } : asked;
  const found = await ask(`${path}/trend`, { ...range, number: 5 }, body);
  const begins = new Map(found.epochs.map((one) => [one.epoch, new Date(one.begins)]));
  const series = found.series.map((one) => ({ value: one.value, points: one.points.map((point) => ({ ...point, time: begins.get(point.epoch) })) }));
  const mean = series[0]?.value === "mean";
  const said = series.map((one) => `${shown(one.value)} ${mean ? figure(one.points.at(-1)?.share ?? 0) : percent(one.points.at(-1)?.share ?? 0)}`).join(", ");
  lines($("trend"), series, `Share by epoch with ${percent(found.confidence, 0)} bands; in the newest: ${said}`, mean ? d3.format("~g") : d3.format(".0%"));
  const small = found.epochs.filter((one) => one.reports < found.min_batch).length;
  $("legend").replaceChildren(...series.map((one, place) => h("span", { class: `s${Math.min(place, 5)}` }, named(one.value, 40))),
    small ? h("em", {}, `${small} epochs below the minimum batch are left out`) : "");
}

function takeAway() {
  const { asked, body } = question();
  const range = asked.last ? `--last ${asked.last}` : asked.epochs === "newest" ? "" : `--epochs ${asked.epochs}`;
  const strings = body ? " --candidates strings.txt" : "";
  $("commands").textContent = `hubbub query ${shown(name)} ${range}${strings}\nhubbub trend ${shown(name)} ${range}${strings}\n\n` +
    `import hubbub.query\nhubbub.query.connect("${location.origin}").estimates("${shown(name)}")`;
  const buttons = ["csv", "parquet"].map((format) => {
    const button = h("button", { type: "button", class: "quiet" }, `Download ${format === "csv" ? "CSV" : "Parquet"}`);
    button.addEventListener("click", () => download(`${path}/export`, { ...asked, format }, `${name}.${format}`).catch((error) => tell($("flags"), error)));
    return button;
  });
  $("take").replaceChildren(...(body ? [] : buttons.flatMap((one) => [one, " "])));
}

async function all() {
  $("main").setAttribute("aria-busy", "true");
  try {
    if (metric.kind === "strings" && !question().body.candidates.length) {
      $("flags").replaceChildren(h("p", { class: "note" }, "This metric is over strings: nobody listed them before. Say which to look for, one a line, and ask."));
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
  $("facts").replaceChildren(...[metric.mechanism, `ε ${figure(metric.epsilon, 4)} a report`, `an epoch is a${metric.epoch_length === "hour" ? "n" : ""} ${metric.epoch_length}`,
    `${count(metric.reports)} reports in all`, `minimum batch ${count(metric.min_batch)}`, `asked by ${shown(metric.owner)}`, `until ${metric.expires}`]
    .map((fact) => h("span", { class: "chip" }, fact)));
  controls.range.replaceChildren(...RANGES.map(([value, label]) => h("option", { value }, label)));
  controls.range.addEventListener("change", () => { $("custom").hidden = controls.range.value !== "custom"; });
  $("candidates").hidden = metric.kind !== "strings";
  $("shown").hidden = metric.kind === "mean";
  controls.file.addEventListener("change", async () => { controls.candidates.value = await controls.file.files[0].text(); });
  $("controls").addEventListener("submit", (event) => { event.preventDefault(); all(); });
  controls.shown.addEventListener("change", all);
  controls.confidence.addEventListener("change", all);
  privacyCard($("card"), detail);
  offerComparison(metric, () => compare(path, question()));
  await all();
}

begin().catch((error) => { tell($("flags"), error); ready(); });
