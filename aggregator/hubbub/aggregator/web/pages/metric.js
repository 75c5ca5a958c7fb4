// The page of one metric: estimates with their intervals, the trend, crossed parts, a comparison,
// and what a report reveals.
/* global d3 */
import { $, ask, atMost, button, count, download, figure, h, inFull, inUnit, nameElement, notesText, ofMeans, percent, ready, several, printable, errorOf, measured } from "./shell.js";
import { Address, kinds } from "./address.js";
import { otherAnswer } from "./beside.js";
import { BrokenDown } from "./breakdown.js";
import { lines } from "./charts.js";
import { Compared } from "./compare.js";
import { Controls } from "./controls.js";
import { Crossed } from "./cross.js";
import { Discovered } from "./discovered.js";
import { flagsOf, ordered, showEstimates, showPages } from "./estimates.js";
import { showExperiment } from "./experiment.js";
import { epochsOfFigures, showFigures } from "./figures.js";
import { likelyStrings } from "./likely.js";
import { Marks } from "./marks.js";
import { showModel } from "./model.js";
import { drawnPercentiles, percentileTrend } from "./percentiles.js";
import { privacyCard } from "./privacy.js";
import { tooFewReports, lowerHeading, showState, unlisted } from "./states.js";
import { inPoints, signed } from "./tables.js";

const ROWS = 100;
const MAX_RANGES = 1024;
const FIELDS = {
  name: kinds.text(""),
  epochs: kinds.text("newest"),
  confidence: kinds.among("0.95", "0.9", "0.99"),
  looks: kinds.among("once", "any"),
  show: kinds.among("raw", "consistent"),
  beside: kinds.text(""),
  list: kinds.texts(),
  before: kinds.text(""),
  after: kinds.text(""),
  changes: kinds.text("", (value) => /^-?[a-z_]{1,20}$/.test(value)),
  rows: kinds.text(""),
  columns: kinds.text(""),
  within: kinds.text(""),
  by: kinds.text(""),
  find: kinds.text(""),
  order: kinds.text("", (value) => /^-?[a-z_]{1,20}$/.test(value)),
  first: kinds.number(),
};

const address = new Address(FIELDS, () => {
  controls.show();
  $("find").value = address.state.find;
  all();
});
/**
 * Parameters for intervals that hold at every look. Only estimates have such intervals; trends and
 * comparisons do not.
 */
const lookParameters = () => (address.state.looks === "any" ? { anytime: true } : {});
const path = `/v1/metrics/${encodeURIComponent(address.state.name)}`;
let metric = null;
let controls = null;
let comparison = null;
let crossTable = null;
let breakdown = null;
let discovery = null;
let marks = null;
let newest = null; // the answer on the page

/** The question in the address: its parameters, and its typed strings. */
function question() {
  const { epochs, confidence, list } = address.state;
  const query = { confidence };
  if (epochs.startsWith("last:")) query.last = epochs.slice(5);
  else query.epochs = epochs;
  if (metric.candidates === null) return { asked: query, body: null };
  if (list.length) query.list = list;
  return { asked: query, body: address.typed.length ? { candidates: address.typed } : null };
}

async function estimates() {
  const { asked: query, body } = question();
  const { find, order, first } = address.state;
  const isOrdered = ordered(metric);
  const paged = {
    ...query,
    ...lookParameters(),
    find,
    first,
    number: isOrdered ? MAX_RANGES : ROWS,
    order: order || (isOrdered ? "listed" : "rank"),
  };
  const answer = await ask(`${path}/estimates`, paged, body);
  newest = answer;
  const beside = await otherAnswer(address.state.beside, { ...query, ...lookParameters() }, answer.values);
  controls.answered(answer);
  $("flags").replaceChildren(...flagsOf(answer, Number(first) || find, metric.candidates !== null));
  const place = {
    answer: $("answer"),
    drawing: $("bars"),
    notes: $("bars-notes"),
    table: $("table"),
    percentiles: $("percentiles"),
  };
  await showEstimates(place, answer, {
    first: Number(first),
    hourly: metric.epoch_length === "hour",
    consistent: wantsConsistent(),
    beside,
    order: order || paged.order,
    sort: (field) => change({ order: field, first: "0" }, estimates),
    find,
  });
  const go = (first) => change({ first: `${first}` }, estimates);
  showPages(answer, Number(first), paged.number, go);
  $("likely").replaceChildren(...(answer.mechanism === "tree" && !body ? [likelyStrings(path, query)] : []));
}

const wantsConsistent = () => address.state.show === "consistent" && !ofMeans(metric);

async function trend() {
  const { asked: query, body } = question();
  const range = query.epochs === "newest" ? { ...query, epochs: "all" } : query;
  const answer = await ask(`${path}/trend`, { ...range, number: 5 }, body);
  const begins = new Map(answer.epochs.map((epoch) => [epoch.epoch, new Date(epoch.begins)]));
  const series = answer.series.map((line) => ({
    value: line.value,
    points: line.points.map((point) => ({ ...point, time: begins.get(point.epoch) })),
  }));
  const mean = answer.kind !== "values";
  const format = mean ? figure : percent;
  const stepText = (step) => {
    const [difference, low, high] = [step.difference, step.low, step.high].map((change) =>
      changeText(answer, change, errorOf(step)),
    );
    return `${difference} (${low} to ${high})`;
  };
  const last = series
    .map((line) => `${printable(line.value)} ${format(line.points.at(-1)?.share ?? 0)}`)
    .join(", ");
  const level = percent(answer.confidence, 0);
  const steps = answer.series.flatMap((line) =>
    line.shifts.map((step) => ({ ...step, value: line.value, name: `${printable(line.value, 12)} steps` })),
  );
  const dated = steps.map((step) => ({
    ...step,
    text: stepText(step),
    time: begins.get(answer.epochs.find((epoch) => epoch.date === step.date).epoch),
  }));
  if (answer.epochs.length < 2) return drawNoTrend();
  lines(
    $("trend"),
    series,
    `${mean ? "Mean" : "Share"} by epoch with ${level} bands; in the newest: ${last}`,
    {
      most: mean ? null : 1,
      axis: mean ? inUnit("mean", answer) : "share of the reports",
      format: mean ? figure : d3.format("~%"),
      exact: mean ? inFull : (share) => percent(share),
      marks: [...marks.within(answer.epochs), ...dated],
    },
  );
  $("steps").replaceChildren(...findings(answer, dated));
  $("percentile-trend").parentElement.hidden = !newest?.percentiles.length;
  if (newest?.percentiles.length) await percentileTrend($("percentile-trend"), path, range, drawnPercentiles(newest));
  const joined = answer.joined.length ? [`with the reports of ${answer.joined.join(", ")}`] : [];
  $("legend").replaceChildren(
    ...answer.series.map((line, i) => {
      const missing = line.not_asked ? [` (not asked in ${line.not_asked})`] : [];
      return h("span", { class: `s${Math.min(i, 5)}` }, nameElement(line.value), ...missing);
    }),
    ...joined,
    h("p", {}, drawnAs(answer, level) + notesText(answer)),
  );
  marks.show();
}

/** Shows, in place of lines and their legend, that there is one epoch. */
function drawNoTrend() {
  $("trend").replaceChildren(h("p", { class: "muted" }, "One epoch has an answer. A trend needs two."));
  $("steps").replaceChildren();
  $("legend").replaceChildren();
  $("percentile-trend").parentElement.hidden = true;
  marks.show();
}

/** The text that explains the line, the band and the dots. */
const drawnAs = ({ series }, level) =>
  series.some((line) => line.points.some((point) => point.line != null))
    ? `Dots: the estimate of each epoch alone. Lines: the smoothed estimate from all epochs, with ${level} bands.`
    : `Bands: ${level} intervals, of each epoch by itself.`;

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** The sentence about the steps of the lines, the rate of false steps, and weekdays. */
function findings(answer, steps) {
  const stepTexts = steps.map((step) => {
    const span = step.within === step.date ? "" : ` (within ${step.within})`;
    return h("li", {}, nameElement(step.value), `: a step of ${step.text} on ${step.date}${span}`);
  });
  const weeks = answer.series
    .filter((line) => line.weekdays.length)
    .map((line) => {
      const effects = line.weekdays.map((effect, day) => `${DAYS[day]} ${changeText(answer, effect)}`);
      return h("li", {}, nameElement(line.value), `: weekdays differ: ${effects.join(", ")}`);
    });
  const rate = `at most ${percent(answer.false_alarm, 0)} of lines without a step show a step`;
  return [...stepTexts, ...weeks, ...(steps.length ? [h("li", {}, rate)] : [])];
}

/** A change as comparisons show it: of shares in points, of means in their unit. */
const changeText = (answer, change, error) =>
  answer.kind === "values"
    ? `${inPoints(change)} points`
    : [signed(change, (number) => measured(number, error)), printable(answer.unit)].filter(Boolean).join(" ");

async function takeAway() {
  const { asked: parameters, body } = question();
  const { confidence } = parameters;
  const query = metric.figures ? { ...epochsOfFigures(parameters), confidence } : { ...parameters, ...lookParameters() };
  const answer = await ask(`${path}/commands`, { ...query, origin: location.origin }, body);
  $("commands").textContent = `${answer.shell}\n\n${answer.notebook}`;
  const buttons = answer.files.map((format) => {
    const name = `${address.state.name}.${format}`;
    return button(`Download ${format === "csv" ? "CSV" : "Parquet"}`, async () => {
      try {
        await download(`${path}/export`, { ...query, format }, name);
      } catch (error) {
        showState($("flags"), error);
      }
    });
  });
  $("take").replaceChildren(...(body ? [] : buttons.flatMap((button) => [button, " "])));
}

/**
 * Shows everything that the address requests. The discovered strings are a separate request, which
 * may have an answer even if the counts have none.
 */
async function everything() {
  try {
    await showCounted();
  } finally {
    await discovery.show(question());
  }
}

async function showCounted() {
  await estimates();
  await trend();
  await crossTable.show(question());
  await showFigures(path, metric, address.state.by, question().asked);
  await showExperiment(metric, question().asked);
  await breakdown.show(question());
  await comparison.show(question());
  await takeAway();
}

const all = () => enqueue(everything);

/** Goes to another state: changes the address and requests the affected parts at once. */
function change(changes, askAgain = everything, typed = address.typed) {
  address.go(changes, { typed });
  controls.show();
  return enqueue(askAgain);
}

let queue = Promise.resolve();

/** Runs requests one after another, so that the answer on the page belongs to the last request. */
function enqueue(askAgain) {
  queue = queue.then(() => showAnswer(askAgain));
  return queue;
}

async function showAnswer(askAgain) {
  $("main").setAttribute("aria-busy", "true");
  try {
    $("state").replaceChildren(...complaints());
    if (metric.kind === "model") {
      show(false);
      $("controls").hidden = true;
      $("model").hidden = false;
      await showModel(metric.name);
      return ready();
    }
    const notice = metric.reports ? unnamed() : tooFewReports(metric);
    show(!notice);
    if (notice) showInstead(notice);
    else await askAgain();
  } catch (error) {
    showState($("flags"), error, {
      metric,
      again: all,
      remedies: {
        all: () => change({ epochs: "all", first: "0" }),
        reset: () =>
          change({
            ...{ epochs: "newest", order: "", changes: "", first: "0", find: "", list: [] },
            ...{ rows: "", columns: "", within: "", by: "" },
          }),
        without: () => change({ list: [] }),
      },
    });
    show(Boolean(newest) && error.status === undefined);
  }
  ready();
}

function showInstead(state) {
  $("flags").replaceChildren(state);
  lowerHeading($("flags"));
}

/** Shows the page of a metric over strings for which no strings were named. */
function unnamed() {
  const hasStrings = metric.candidates || metric.discover || address.state.list.length || address.typed.length;
  return metric.candidates === null || hasStrings ? null : unlisted(metric);
}

/** Shows the sections of an answer only if there is an answer. */
function show(hasAnswer) {
  for (const element of document.querySelectorAll("[data-needs=answer]")) element.hidden = !hasAnswer;
  if (!metric?.parts.length) $("cross").hidden = true;
  if (!metric?.public.length) $("breakdown").hidden = true;
  if (!metric?.figures) $("figures").hidden = true;
  if (!metric?.experiment) $("experiment").hidden = true;
}

function complaints() {
  const notes = [...address.complaints];
  if (!address.whole) {
    notes.push("Too many strings for a link: save them as a list to share this page");
  }
  return notes.map((complaint) => h("p", { class: "note" }, printable(complaint, 300), "."));
}

/** Copies a link that shows the same answer tomorrow, because it names the epochs. */
async function copyLink() {
  const pinned = newest ? { epochs: newest.dates } : {};
  const link = `${location.origin}${address.link(pinned)}`;
  try {
    await navigator.clipboard.writeText(link);
    $("linked").textContent = "copied";
  } catch {
    $("linked").replaceChildren(h("a", { href: link }, "the link"));
  }
}

async function begin() {
  const { name } = address.state;
  document.title = `hubbub: ${printable(name)}`;
  $("name").replaceChildren(nameElement(name));
  show(false);
  const detail = await ask(path);
  metric = detail.metric;
  $("description").textContent = printable(metric.description, 400);
  $("facts").replaceChildren(
    ...[
      metric.mechanism,
      `ε ${atMost(metric.epsilon, 4)} a report`,
      `${several(metric.reports, "report")} in all`,
      ...metric.facts.map((fact) => printable(`${fact.label} ${fact.text}`, 200)),
    ].map((fact) => h("span", { class: "chip" }, fact)),
  );
  $("alert").textContent = printable(detail.alert, 600);
  $("alert").hidden = !detail.alert;
  $("alert").classList.toggle("bad", detail.alert_raised);
  privacyCard($("card"), detail);
  controls = new Controls(address, metric, change);
  marks = new Marks($("marks"), name, () => enqueue(trend));
  crossTable = new Crossed(path, metric, address, (changes) =>
    change(changes, () => crossTable.show(question())),
  );
  breakdown = new BrokenDown(path, metric, address, (changes) =>
    change(changes, () => breakdown.show(question())),
  );
  discovery = new Discovered(path, metric, address);
  comparison = new Compared(path, metric, address, (changes) =>
    change(changes, () => comparison.show(question())),
  );
  $("find").value = address.state.find;
  $("find").addEventListener("change", () =>
    change({ find: $("find").value, first: "0" }, estimates),
  );
  $("link").addEventListener("click", copyLink);
  await Promise.all([controls.begin(), marks.begin()]);
  $("answers").hidden = false; // shown first, because pictures measure their width
  await all();
}

async function open() {
  try {
    $("answers").hidden = true;
    await begin();
  } catch (error) {
    showState($("state"), error, { again: open });
    ready();
  }
}

await open();
