// The differences between two epochs of a metric, with intervals and p-values.
/* global d3 */
import { $, ask, noticeText, notesText, count, errorOf, h, inFull, inUnit, measured, ofMeans, several, printable, figure, percent } from "./shell.js";
import { bars } from "./charts.js";
import { nameOf } from "./percentiles.js";
import { showState } from "./states.js";
import { fillAnswer, inPoints, signed } from "./tables.js";

const SHOWN = 15;
const ROWS = 100;

export class Compared {
  /** change: goes to another state, with other epochs. */
  constructor(path, metric, address, change) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    this.form = $("comparing");
    this.change = change;
    this.large = metric.epochs.filter((epoch) => epoch.reports >= metric.min_batch);
    for (const [which, ago] of [["before", 2], ["after", 1]]) {
      const control = this.form.elements[which];
      control.replaceChildren(
        ...this.large.map((epoch) =>
          h("option", { value: epoch.date }, `${epoch.date} (${count(epoch.reports)})`),
        ),
      );
      control.selectedIndex = Math.max(this.large.length - ago, 0);
      control.addEventListener("change", () => change(this.chosen()));
    }
  }

  chosen() {
    const { before, after } = this.form.elements;
    return { before: before.value, after: after.value };
  }

  /**
   * Selects a range in a control. A link may name a range, or whole periods, that the control does
   * not list; it is added as an option.
   */
  choose(which, dates) {
    const control = this.form.elements[which];
    if (![...control.options].some((option) => option.value === dates)) {
      control.append(h("option", { value: dates }, printable(dates, 60)));
    }
    control.value = dates;
  }

  async show({ asked: query, body }) {
    this.form.hidden = this.large.length < 2;
    if (this.form.hidden) {
      const shortage = this.large.length ? "There is one epoch" : "There is no epoch yet";
      const message = `${shortage} with enough reports; from the second on, two can be compared.`;
      $("compared").replaceChildren(h("p", { class: "muted" }, message));
      return;
    }
    // The service picks closed epochs; if there are too few, those that the controls show.
    const closed = this.large.filter((epoch) => epoch.closed).length;
    const { changes, ...linked } = this.address.state;
    const { before, after } = closed < 2 && !linked.before && !linked.after ? this.chosen() : linked;
    const { confidence, list } = query;
    const question = { confidence, list: list ?? [], epochs: before, to_epochs: after, number: ROWS };
    const order = changes || "p_value";
    const sort = (field) => this.change({ changes: field });
    try {
      const answer = await ask(`${this.path}/compare`, { ...question, order }, body);
      this.choose("before", answer.before_dates);
      this.choose("after", answer.after_dates);
      await show(answer, order, sort);
    } catch (error) {
      if (error.status !== 400 && error.status !== 409) throw error;
      if (before) this.choose("before", before);
      if (after) this.choose("after", after);
      showState($("compared"), error, {});
    }
  }
}

/** A difference of shares in percentage points, with its sign. */
export const points = (share) => (share ? d3.format("+~g")(Number((100 * share).toPrecision(12))) : "0");

/** The sentence about moved percentiles, for metrics of numbers with buckets. */
function shiftsOf(answer) {
  const texts = answer.percentiles.map((row) => {
    const format = (number) => measured(number, errorOf(row));
    const [low, high] = ["low", "high"].map((end) => signed(row[end], (number) => measured(number, errorOf(row), end)));
    const difference = `${signed(row.difference, format)} (${low} to ${high})`;
    return `${nameOf(row)} from ${format(row.before)} to ${format(row.after)}, ${difference}${row.moved ? ", moved" : ""}`;
  });
  const unit = answer.unit ? ` in ${printable(answer.unit)}` : "";
  return texts.length ? `Percentiles${unit}, ${percent(answer.confidence, 0)} intervals: ${texts.join("; ")}.` : "";
}

async function show(answer, order, sort) {
  const mean = ofMeans(answer);
  const drawing = h("div"),
    table = h("table");
  const changed = answer.values.filter((value) => value.changed).length;
  const part = answer.values.length < answer.total;
  // Sorted by p-value, changed values come first, so the visible rows contain all of them.
  const scope = part && order !== "p_value" ? `the ${count(answer.values.length)} below` : "";
  const verdict = changed
    ? `${changed} of ${scope || count(answer.total)} changed,`
    : `no ${answer.percentiles.length ? "range changed" : "change"}${scope && ` among ${scope}`}`;
  $("compared").replaceChildren(
    h("p", {}, shiftsOf(answer)),
    h(
      "p",
      {},
      `${several(answer.before_reports, "report")} before, ${count(answer.after_reports)} after: ` +
        `${verdict} beyond chance.${noticeText(answer)}`,
    ),
    h("figure", {}, drawing),
    h(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of differences" },
      table,
    ),
    h(
      "p",
      { class: "muted" },
      notesText(answer) +
        (answer.chosen ? ` Compared: ${printable(answer.chosen, 300)}.` : "") +
        (answer.final ? "" : " Not final: these epochs still accept reports.") +
        " For the population: the intervals cover the randomization noise and the choice of who reported." +
        " p is for a single row; intervals and marks account for the selection of the surest rows.",
    ),
  );
  const rows = answer.values
    .slice(0, SHOWN)
    .map((value) => ({ ...value, estimate: value.difference, detected: value.changed }));
  bars(
    drawing,
    rows,
    "Differences with their intervals; the table has the same numbers",
    {
      axis: mean ? inUnit("difference of means", answer) : "difference of shares, in percentage points",
      format: mean ? figure : points,
      exact: mean ? (number, end) => signed(number, (change) => inFull(change, end)) : (share) => `${inPoints(share)} points`,
    },
  );
  const beginning = part ? `The first ${count(answer.values.length)} of ${count(answer.total)}, s` : "S";
  const orderName = order.replace("-", "").replace("low", "interval").replace("p_value", "p-value");
  const sorting = mean ? {} : { order, sort };
  await fillAnswer(table, `${beginning}orted by ${orderName}`, "compare", answer, answer.values, sorting);
}
