// Another metric with the same values, drawn beside this one: one question asked in two ways.
import { $, ask, everyMetric, h, shown } from "./shell.js";

const MOST = 1024;

/** Offers the metrics that may have the same values, in a control. */
export async function offerBeside(metric, control) {
  if (metric.kind !== "values") return;
  const alike = (await everyMetric()).filter(
    (one) =>
      one.kind === metric.kind &&
      one.total_values === metric.total_values &&
      one.total_values <= MOST &&
      one.name !== metric.name,
  );
  const option = (name, label) => h("option", { value: name }, shown(label));
  control.replaceChildren(
    option("", "nothing"),
    ...alike.map(({ name }) => option(name, name)),
  );
  $("beside").hidden = !alike.length;
}

/** The other metric's answer to the same question, by value; null where none is beside, or where
 *  its values are others. */
export async function besides(name, asked, values) {
  if (!name) return null;
  const path = `/v1/metrics/${encodeURIComponent(name)}/estimates`;
  const found = await ask(path, { ...asked, number: MOST, order: "listed" });
  const rows = new Map(found.values.map((one) => [one.value, one]));
  return values.every((one) => rows.has(one.value)) ? { name, rows } : null;
}
