// Two parts of a metric as a heat map, every share with its interval, and whether they go together;
// by a third part a heat map for each of its values.
/* global d3 */
import { $, ask, count, h, percent, shown } from "./shell.js";
import { heatMap } from "./heat_map.js";
import { showState } from "./states.js";
import { fillAnswer } from "./tables.js";

// Of so many cells the table is open; of more on demand.
const OPEN = 60;
const LEAST = 1e-12;

export class Crossed {
  /** change: goes to another state, which says which parts. */
  constructor(path, metric, address, change) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    this.form = $("crossing");
    for (const which of ["rows", "columns", "within"]) {
      const control = this.form.elements[which];
      control.replaceChildren(
        ...(which === "within" ? [h("option", { value: "" }, "all together")] : []),
        ...metric.parts.map((one) => h("option", { value: one }, shown(one))),
      );
      control.addEventListener("change", () => change(this.chosen(which)));
    }
  }

  /**
   * Both parts, and the third. Where two would be the same, the other one takes the place of what
   * was changed, and the third is none.
   */
  chosen(changed) {
    const { rows, columns, within } = this.form.elements;
    if (changed === "within" && [rows.value, columns.value].includes(within.value)) {
      const others = this.metric.parts.filter((one) => one !== within.value);
      [rows.value, columns.value] = others;
    } else if ([rows.value, columns.value].includes(within.value)) within.value = "";
    if (rows.value === columns.value) {
      const other = changed === "rows" ? columns : rows;
      const before = this.address.state[changed];
      other.value = before || this.metric.parts.find((one) => one !== rows.value);
    }
    return { rows: rows.value, columns: columns.value, within: within.value };
  }

  async show({ asked }) {
    const { parts } = this.metric;
    if (!parts.length) return;
    let { rows, columns, within } = this.address.state;
    // What the address leaves out is the first that is free, as in the answer.
    const free = parts.filter((one) => ![rows, columns, within].includes(one));
    rows ||= free.shift() ?? "";
    columns ||= free.shift() ?? "";
    for (const [which, part] of Object.entries({ rows, columns, within })) {
      this.form.elements[which].value = part;
    }
    // An address that asks for a third part of two can be mended where it is shown.
    $("third").hidden = this.metric.ways < 3 && !within;
    const { last, epochs, confidence } = asked;
    const given = { last: last ?? "", epochs: epochs ?? "", confidence, rows, columns, by: within };
    try {
      await show(await ask(`${this.path}/cross`, given));
    } catch (error) {
      if (error.status !== 400) throw error;
      showState($("crossed"), error, {});
    }
  }
}

/** How the parts go together, in words. */
function said(found, association = found.association, within = found.by) {
  const { p_value, cramers_v, low, high, rare_rows, rare_columns } = association;
  const p = p_value < LEAST ? "p < 1e-12" : `p = ${p_value.toPrecision(2)}`;
  const parts = `${shown(found.rows)} and ${shown(found.columns)}`;
  const together = p_value <= 1 - found.confidence;
  const first = together ? `${parts} go together` : `No sign that ${parts} go together`;
  if (within) return `${first} within ${shown(within)} (${p}).`;
  if (cramers_v === null) {
    return `${first} (${p}); how strongly cannot be said from so few reports.`;
  }
  const rare = rare_rows.length + rare_columns.length;
  const merged = rare > 1 ? ` (${count(rare)} rare values count as one)` : "";
  const ends = `${low.toFixed(2)} to ${high.toFixed(2)}`;
  return `${first} (${p}); Cramer’s V ${cramers_v.toFixed(2)}, ${ends}${merged}.`;
}

async function show(found) {
  const table = h("table");
  const label = `${shown(found.columns)} within ${shown(found.rows)}`;
  const slices = found.by ? found.slices : [null];
  const drawings = slices.map(() => h("div"));
  $("crossed").replaceChildren(
    h("p", {}, said(found)),
    h(
      "figure",
      {},
      ...slices.flatMap((one, i) => [...(one ? [heading(found, one)] : []), drawings[i]]),
      h(
        "figcaption",
        { class: "muted" },
        `Each cell: its share of its row, with the ${percent(found.confidence, 0)} interval drawn ` +
          "from 0 at its left edge to 100% at its right. The paler, the less sure; bold is beyond chance. Of the population " +
          "that reports are from: intervals hold who happened to report too.",
      ),
    ),
    h(
      "details",
      { open: found.values.length <= OPEN ? "" : null },
      h("summary", {}, `${count(found.values.length)} cells as a table`),
      h(
        "div",
        { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of cells" },
        table,
      ),
    ),
  );
  const told = "shares with their intervals; the table has the same";
  for (const [i, one] of slices.entries()) {
    const cells = one ? found.values.filter((cell) => cell.slice === one.value) : found.values;
    const of = one ? ` of ${shown(one.value)}` : "";
    heatMap(drawings[i], cells, `${label}${of}: ${told}`);
  }
  const by = found.by ? ` by ${shown(found.by)}` : "";
  await fillAnswer(table, `${label}${by}`, "cross", found, found.values, {
    without: found.by ? [] : ["slice"],
  });
}

/** What stands above one value of the third part: how frequent it is, and how the two go together. */
function heading(found, { value, share, association }) {
  const first = `${shown(found.by)}: ${shown(value)}, ${percent(share)} of the reports.`;
  return h("p", {}, `${first} ${association ? said(found, association, "") : "Too rare to say."}`);
}
