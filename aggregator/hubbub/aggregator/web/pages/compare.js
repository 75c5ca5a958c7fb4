// What differs between two epochs of a metric, with intervals and p-values.
/* global d3 */
import { $, ask, count, h, tell } from "./shell.js";
import { bars } from "./charts.js";
import { fillAnswer } from "./tables.js";

const SHOWN = 15;

/** Fill the two choices with the epochs that hold enough; `go` is called when they were made. */
export function offerComparison(metric, go) {
  const large = metric.epochs.filter((one) => one.reports >= metric.min_batch);
  const label = (one) =>
    `${one.begins.slice(0, metric.epoch_length === "hour" ? 16 : 10).replace("T", " ")} (${count(one.reports)})`;
  const form = $("comparing");
  if (large.length < 2) {
    form.hidden = true;
    $("compared").replaceChildren(
      h(
        "p",
        { class: "muted" },
        "There is one epoch with enough reports; from the second on, two can be compared.",
      ),
    );
    return;
  }
  for (const [place, which] of [
    [-2, "before"],
    [-1, "after"],
  ]) {
    form.elements[which].replaceChildren(
      ...large.map((one) =>
        h(
          "option",
          { value: one.epoch, selected: one === large.at(place) ? "" : null },
          label(one),
        ),
      ),
    );
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
}

/** Ask and show. */
export async function compare(path, { asked, body }) {
  const form = $("comparing").elements;
  try {
    const given = {
      confidence: asked.confidence,
      epochs: form.before.value,
      to_epochs: form.after.value,
      number: 100,
    };
    await show(await ask(`${path}/compare`, given, body));
  } catch (error) {
    tell($("compared"), error);
  }
}

async function show(found) {
  const mean = found.kind === "mean";
  const drawing = h("div"),
    table = h("table");
  const changed = found.values.filter((one) => one.changed).length;
  $("compared").replaceChildren(
    h(
      "p",
      {},
      `${count(found.before_reports)} reports before, ${count(found.after_reports)} after: ` +
        (changed
          ? `${changed} of ${count(found.total)} changed, beyond what chance explains.`
          : "no change beyond what chance explains.") +
        " Of the population that reports are from: intervals hold who happened to report too.",
    ),
    h("figure", {}, drawing),
    h("div", { class: "wide" }, table),
  );
  const drawn = found.values
    .slice(0, SHOWN)
    .map((one) => ({ ...one, estimate: one.difference, detected: one.changed }));
  bars(
    drawing,
    drawn,
    "Differences with their intervals; the table has the same numbers",
    mean ? d3.format("~g") : d3.format("+.1%"),
  );
  await fillAnswer(table, "Sorted by p-value", "compare", found, found.values);
}
