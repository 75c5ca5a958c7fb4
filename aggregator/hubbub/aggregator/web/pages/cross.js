// Two parts of a metric as a heat map, each share with its interval, and their association; with a
// third part, a heat map for each of its values.
/* global d3 */
import { $, ask, count, h, percent, printable } from "./shell.js";
import { heatMap } from "./heat_map.js";
import { showState } from "./states.js";
import { fillAnswer } from "./tables.js";

// Up to this many cells the table is open; with more cells the reader opens it.
const OPEN = 60;
const LEAST = 1e-12;

export class Crossed {
  /** change: goes to another state, with other parts. */
  constructor(path, metric, address, change) {
    this.path = path;
    this.metric = metric;
    this.address = address;
    this.form = $("crossing");
    for (const which of ["rows", "columns", "within"]) {
      const control = this.form.elements[which];
      control.replaceChildren(
        ...(which === "within" ? [h("option", { value: "" }, "all together")] : []),
        ...metric.parts.map((part) => h("option", { value: part }, printable(part))),
      );
      control.addEventListener("change", () => change(this.chosen(which)));
    }
  }

  /**
   * The two selected parts, and the third. If two of them would be equal, the other part replaces
   * the changed one, and there is no third.
   */
  chosen(changed) {
    const { rows, columns, within } = this.form.elements;
    if (changed === "within" && [rows.value, columns.value].includes(within.value)) {
      const others = this.metric.parts.filter((part) => part !== within.value);
      [rows.value, columns.value] = others;
    } else if ([rows.value, columns.value].includes(within.value)) within.value = "";
    if (rows.value === columns.value) {
      const other = changed === "rows" ? columns : rows;
      const previous = this.address.state[changed];
      other.value = previous || this.metric.parts.find((part) => part !== rows.value);
    }
    return { rows: rows.value, columns: columns.value, within: within.value };
  }

  async show({ asked: query }) {
    const { parts } = this.metric;
    if (!parts.length) return;
    let { rows, columns, within } = this.address.state;
    // A part that the address leaves out is the first free one, as in the answer.
    const free = parts.filter((part) => ![rows, columns, within].includes(part));
    rows ||= free.shift() ?? "";
    columns ||= free.shift() ?? "";
    for (const [which, part] of Object.entries({ rows, columns, within })) {
      this.form.elements[which].value = part;
    }
    // If the address names a third part of a metric that has only two, the control is shown so that
    // the reader can correct it.
    $("third").hidden = this.metric.ways < 3 && !within;
    const { last, epochs, confidence } = query;
    const question = { last: last ?? "", epochs: epochs ?? "", confidence, rows, columns, by: within };
    try {
      await show(await ask(`${this.path}/cross`, question));
    } catch (error) {
      if (error.status !== 400) throw error;
      showState($("crossed"), error, {});
    }
  }
}

/** The sentence about the association of the two parts. */
function sentence(answer, association = answer.association, within = answer.by) {
  const { p_value, cramers_v, low, high, rare_rows, rare_columns } = association;
  const p = p_value < LEAST ? "p < 1e-12" : `p = ${p_value.toPrecision(2)}`;
  const parts = `${printable(answer.rows)} and ${printable(answer.columns)}`;
  const isAssociated = p_value <= 1 - answer.confidence;
  const first = isAssociated ? `${parts} go together` : `No sign that ${parts} go together`;
  if (within) return `${first} within ${printable(within)} (${p}).`;
  if (cramers_v === null) {
    return `${first} (${p}); too few reports to estimate how strongly.`;
  }
  const rare = rare_rows.length + rare_columns.length;
  const merged = rare > 1 ? ` (${count(rare)} rare values count as one)` : "";
  const ends = `${low.toFixed(2)} to ${high.toFixed(2)}`;
  return `${first} (${p}); Cramer’s V ${cramers_v.toFixed(2)}, ${ends}${merged}.`;
}

async function show(answer) {
  const table = h("table");
  const label = `${printable(answer.columns)} within ${printable(answer.rows)}`;
  const slices = answer.by ? answer.slices : [null];
  const drawings = slices.map(() => h("div"));
  $("crossed").replaceChildren(
    h("p", {}, sentence(answer)),
    h(
      "figure",
      {},
      ...slices.flatMap((slice, i) => [...(slice ? [heading(answer, slice)] : []), drawings[i]]),
      h(
        "figcaption",
        { class: "muted" },
        `Each cell: its share of its row, with the ${percent(answer.confidence, 0)} interval drawn ` +
          "from 0 at its left edge to 100% at its right. The paler, the less sure; bold is beyond chance. For the population: " +
          "the intervals cover the randomization noise and the choice of who reported.",
      ),
    ),
    h(
      "details",
      { open: answer.values.length <= OPEN ? "" : null },
      h("summary", {}, `${count(answer.values.length)} cells as a table`),
      h(
        "div",
        { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of cells" },
        table,
      ),
    ),
  );
  const hint = "shares with their intervals; the table has the same";
  for (const [i, part] of slices.entries()) {
    const cells = part ? answer.values.filter((cell) => cell.slice === part.value) : answer.values;
    const of = part ? ` of ${printable(part.value)}` : "";
    heatMap(drawings[i], cells, `${label}${of}: ${hint}`);
  }
  const third = answer.by ? ` by ${printable(answer.by)}` : "";
  await fillAnswer(table, `${label}${third}`, "cross", answer, answer.values, {
    without: answer.by ? [] : ["slice"],
  });
}

/**
 * The heading above one value of the third part: its frequency, and the association of the other
 * two.
 */
function heading(answer, { value, share, association }) {
  const first = `${printable(answer.by)}: ${printable(value)}, ${percent(share)} of the reports.`;
  return h("p", {}, `${first} ${association ? sentence(answer, association, "") : "Too rare to estimate."}`);
}
