// Draws another metric with the same values beside this one, to compare two ways of asking.
import { $, ask, everyMetric, h, printable } from "./shell.js";

const MOST = 1024;

/** Fills a control with the metrics that may have the same values. */
export async function offerBeside(metric, control) {
  if (metric.kind !== "values") return;
  const alike = (await everyMetric()).filter(
    (other) =>
      other.kind === metric.kind &&
      other.total_values === metric.total_values &&
      other.total_values <= MOST &&
      other.name !== metric.name,
  );
  const option = (name, label) => h("option", { value: name }, printable(label));
  control.replaceChildren(
    option("", "nothing"),
    ...alike.map(({ name }) => option(name, name)),
  );
  $("beside").hidden = !alike.length;
}

/**
 * The other metric's answer to the same question, by value; null if no metric is selected, or if
 * its values differ.
 */
export async function otherAnswer(name, query, values) {
  if (!name) return null;
  const path = `/v1/metrics/${encodeURIComponent(name)}/estimates`;
  const answer = await ask(path, { ...query, number: MOST, order: "listed" });
  const rows = new Map(answer.values.map((value) => [value.value, value]));
  return values.every((value) => rows.has(value.value)) ? { name, rows } : null;
}
