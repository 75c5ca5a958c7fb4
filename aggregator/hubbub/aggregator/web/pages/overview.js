// The overview: every metric with its answer; found, sorted and grouped as the address says.
import { $, everyMetric, h, ready, several, shown, utc } from "./shell.js";
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

/** What the address says. */
function show() {
  const { find, sort, group } = address.state;
  controls.find.value = find;
  controls.sort.value = sort;
  controls.group.value = group;
  const text = find.toLowerCase();
  const found = metrics.filter((one) =>
    [one.name, one.description, one.owner].some((part) => part.toLowerCase().includes(text)),
  );
  if (sort in SORTS) found.sort(SORTS[sort]);
  const groups = new Map();
  for (const one of found) {
    const key = group === "owner" ? one.owner : "";
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const lists = [...groups].map(([key, own]) => [
    key ? h("h2", { class: "owner" }, shown(key)) : null,
    h("ul", { class: "cards" }, own.map(card)),
  ]);
  const none = h("p", { class: "note" }, `No metric has “${shown(find)}” in its name, owner or description.`);
  $("metrics").replaceChildren(...(found.length || !find ? lists.flat() : [none]).filter(Boolean));
  $("complaints").replaceChildren(
    ...address.complaints.map((one) => h("p", { class: "note" }, shown(one, 300), ".")),
  );
}

for (const name of ["find", "sort", "group"]) {
  const heard = name === "find" ? "input" : "change";
  controls[name].addEventListener(heard, () => {
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
