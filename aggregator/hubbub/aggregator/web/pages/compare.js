// What differs between two epochs of a metric, with intervals and p-values.
/* global d3 */
import { $, ask, before, count, h, inUnit, ofMeans, several, shown } from "./shell.js";
import { bars } from "./charts.js";
import { showState } from "./states.js";
import { fillAnswer } from "./tables.js";

const SHOWN = 15;
const ROWS = 100;

export class Compared {
  /** change: goes to another state, which says which two epochs. */
  constructor(path, metric, address, change) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    this.form = $("comparing");
    this.change = change;
    this.large = metric.epochs.filter((one) => one.reports >= metric.min_batch);
    for (const [which, ago] of [["before", 2], ["after", 1]]) {
      const control = this.form.elements[which];
      control.replaceChildren(
        ...this.large.map((one) =>
          h("option", { value: one.date }, `${one.date} (${count(one.reports)})`),
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

  /** What the controls show: ranges that no option has, as a link or whole periods may, become one. */
  choose(which, dates) {
    const control = this.form.elements[which];
    if (![...control.options].some((one) => one.value === dates)) {
      control.append(h("option", { value: dates }, shown(dates, 60)));
    }
    control.value = dates;
  }

  async show({ asked, body }) {
    this.form.hidden = this.large.length < 2;
    if (this.form.hidden) {
      const there = this.large.length ? "There is one epoch" : "There is no epoch yet";
      const said = `${there} with enough reports; from the second on, two can be compared.`;
      $("compared").replaceChildren(h("p", { class: "muted" }, said));
      return;
    }
    const { before, after, changes } = this.address.state;
    const { confidence, list } = asked;
    const given = { confidence, list: list ?? [], epochs: before, to_epochs: after, number: ROWS };
    const order = changes || "p_value";
    const sort = (field) => this.change({ changes: field });
    try {
      const found = await ask(`${this.path}/compare`, { ...given, order }, body);
      this.choose("before", found.before_dates);
      this.choose("after", found.after_dates);
      await show(found, order, sort);
    } catch (error) {
      if (error.status !== 400 && error.status !== 409) throw error;
      if (before) this.choose("before", before);
      if (after) this.choose("after", after);
      showState($("compared"), error, {});
    }
  }
}

/** Percentage points, with their sign. */
const points = (share) => (share ? d3.format("+~g")(Number((100 * share).toPrecision(12))) : "0");

async function show(found, order, sort) {
  const mean = ofMeans(found);
  const drawing = h("div"),
    table = h("table");
  const changed = found.values.filter((one) => one.changed).length;
  const part = found.values.length < found.total;
  // By p-value those that changed come first, so that none is missed.
  const those = part && order !== "p_value" ? `the ${count(found.values.length)} below` : "";
  const verdict = changed
    ? `${changed} of ${those || count(found.total)} changed,`
    : `no change${those && ` among ${those}`}`;
  $("compared").replaceChildren(
    h(
      "p",
      {},
      `${several(found.before_reports, "report")} before, ${count(found.after_reports)} after: ` +
        `${verdict} beyond what chance explains.` +
        " Of the population that reports are from: intervals hold who happened to report too." +
        " p is of each row alone; intervals and marks allow for the surest rows being picked." +
        (found.chosen ? ` Chosen: ${shown(found.chosen, 300)}.` : "") +
        (found.final ? "" : " Not final: reports of these epochs are still taken.") +
        before(found),
    ),
    h("figure", {}, drawing),
    h(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of differences" },
      table,
    ),
  );
  const drawn = found.values
    .slice(0, SHOWN)
    .map((one) => ({ ...one, estimate: one.difference, detected: one.changed }));
  bars(
    drawing,
    drawn,
    "Differences with their intervals; the table has the same numbers",
    {
      axis: mean ? inUnit("difference of means", found) : "difference of shares, in percentage points",
      format: mean ? d3.format("~g") : points,
      told: mean ? d3.format("+.5~g") : (share) => `${d3.format("+.2f")(100 * share)} points`,
    },
  );
  const which = part ? `The first ${count(found.values.length)} of ${count(found.total)}, s` : "S";
  const by = order.replace("-", "").replace("low", "interval").replace("p_value", "p-value");
  const sorting = mean ? {} : { order, sort };
  await fillAnswer(table, `${which}orted by ${by}`, "compare", found, found.values, sorting);
}
