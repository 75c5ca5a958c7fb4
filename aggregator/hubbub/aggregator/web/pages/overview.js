// The overview: every metric with how many reports it has, epoch by epoch.
import { $, ask, count, figure, h, named, ready, shown, tell } from "./shell.js";
import { spark } from "./charts.js";

function card(metric) {
  const numbers = metric.epochs.map((one) => one.reports);
  const drawing = h("div");
  const said =
    `Reports in the last ${numbers.length} epochs: ` +
    metric.epochs
      .slice(-5)
      .map((one) => `${one.begins.slice(0, 10)} ${count(one.reports)}`)
      .join(", ");
  if (numbers.length) spark(drawing, numbers, said);
  const open = metric.epochs.length && !metric.epochs.at(-1).closed;
  return h(
    "li",
    {},
    h(
      "a",
      { class: "card", href: `/metric?name=${encodeURIComponent(metric.name)}` },
      h("h2", {}, named(metric.name)),
      h("p", { class: "muted" }, shown(metric.description, 200)),
      h("p", {}, h("span", { class: "number" }, count(metric.reports)), " reports"),
      drawing,
      h(
        "p",
        { class: "foot" },
        h("span", { class: "chip" }, metric.kind),
        h("span", { class: "chip" }, metric.mechanism),
        h("span", { class: "chip" }, `ε ${figure(metric.epsilon, 3)}`),
        metric.waiting ? h("span", { class: "chip" }, `${count(metric.waiting)} waiting`) : null,
        metric.withheld ? h("span", { class: "chip" }, `${count(metric.withheld)} withheld`) : null,
        metric.reports === 0
          ? h("span", { class: "chip" }, "nothing yet")
          : h(
              "span",
              { class: open ? "chip" : "chip good" },
              open ? "newest epoch open" : "newest epoch final",
            ),
      ),
    ),
  );
}

async function all() {
  const metrics = [];
  for (let total = 1; metrics.length < total;) {
    const page = await ask("/v1/metrics", { first: metrics.length, number: 100 });
    if (!page.metrics.length) break;
    metrics.push(...page.metrics);
    total = page.total;
  }
  return metrics;
}

try {
  const metrics = await all();
  const reports = metrics.reduce((sum, metric) => sum + metric.reports, 0);
  const updated = metrics
    .map((metric) => metric.updated)
    .filter(Boolean)
    .sort()
    .at(-1);
  $("summary").textContent =
    `${metrics.length} metrics, ${count(reports)} reports counted` +
    (updated ? `, the last one ${updated.slice(0, 16).replace("T", " ")} UTC` : "");
  $("metrics").replaceChildren(...metrics.map(card));
} catch (error) {
  tell($("summary"), error);
}
ready();
