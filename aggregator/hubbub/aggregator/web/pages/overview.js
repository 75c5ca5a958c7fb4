// The overview: all metrics with their answers; filtered, sorted and grouped by the state in the
// address.
import { $, everyMetric, h, ready, several, printable, utc } from "./shell.js";
import { Address, kinds } from "./address.js";
import { card } from "./cards.js";
import { showState } from "./states.js";

const SORTS = {
  name: (a, b) => a.name.localeCompare(b.name),
  reports: (a, b) => b.reports - a.reports,
  newest: (a, b) => (b.updated ?? "").localeCompare(a.updated ?? ""),
};

const FIELDS = {
  find: kinds.text(""),
  sort: kinds.among("catalog", ...Object.keys(SORTS)),
  group: kinds.among("none", "owner"),
};
const address = new Address(FIELDS, show);
const controls = $("controls").elements;
let metrics = [];

/** Shows the state in the address. */
function show() {
  const { find, sort, group } = address.state;
  controls.find.value = find;
  controls.sort.value = sort;
  controls.group.value = group;
  const text = find.toLowerCase();
  const matching = metrics.filter((metric) =>
    [metric.name, metric.description, metric.owner].some((part) => part.toLowerCase().includes(text)),
  );
  if (sort in SORTS) matching.sort(SORTS[sort]);
  const groups = new Map();
  for (const item of matching) {
    const key = group === "owner" ? item.owner : "";
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  const lists = [...groups].map(([key, groupMetrics]) => [
    key ? h("h2", { class: "owner" }, printable(key)) : null,
    h("ul", { class: "cards" }, groupMetrics.map(card)),
  ]);
  const none = h("p", { class: "note" }, `No metric has “${printable(find)}” in its name, owner or description.`);
  $("metrics").replaceChildren(...(matching.length || !find ? lists.flat() : [none]).filter(Boolean));
  $("complaints").replaceChildren(
    ...address.complaints.map((complaint) => h("p", { class: "note" }, printable(complaint, 300), ".")),
  );
}

for (const name of ["find", "sort", "group"]) {
  const type = name === "find" ? "input" : "change";
  controls[name].addEventListener(type, () => {
    address.go({ [name]: controls[name].value }, { quietly: name === "find" });
    show();
  });
}
$("controls").addEventListener("submit", (event) => event.preventDefault());

async function open() {
  try {
    metrics = await everyMetric();
    const reports = metrics.reduce((sum, metric) => sum + metric.reports, 0);
    const updated = metrics
      .map((metric) => metric.updated)
      .filter(Boolean)
      .sort()
      .at(-1);
    $("summary").textContent =
      `${several(metrics.length, "metric")}, ${several(reports, "report")} counted` +
      (updated ? `, the last one ${utc(updated)}` : "");
    show();
  } catch (error) {
    showState($("summary"), error, { again: open });
  }
  ready();
}

await open();
