// The pipeline page: the conservation law and its terms, requested every two seconds.
/* global d3 */
import { $, ask, button, count, h, ready, several } from "./shell.js";
import { Address, kinds } from "./address.js";
import { watchArrivals } from "./arrivals.js";
import { bars, lines, rounded } from "./charts.js";
import { showState } from "./states.js";
import { columnsOf, fillAnswer } from "./tables.js";

const EVERY = 2000;
/** The terms of the law with their meanings. The incoming terms equal the sum of the others. */
let law = {};
const COMES = ["acknowledged", "dummies"];
/** The two sides of the law: the incoming reports, and where they are now. */
const sides = (total) => {
  const incoming = COMES.filter((name) => name !== "dummies" || total.dummies !== 0);
  const places = Object.keys(law).filter((name) => !COMES.includes(name));
  return [incoming, places.filter((name) => name !== "fillers" || total.fillers !== 0)];
};
const termName = (name) => name.replace("_", " ");
/** A term as text; "?" if the shuffler did not report it, unless the aggregator hides it. */
const term = (number, isHidden) => (number === null ? (isHidden ? "not shown" : "?") : count(number));
const address = new Address({ rows: kinds.among("newest", "all") }, () => refresh());
const NEWEST = 50;
const readings = [];

function showLaw(status) {
  const note = $("law");
  const text = !status.complete
    ? "The shuffler’s terms are not available here: only the aggregator’s terms are shown."
    : status.balanced
      ? "The law balances: nothing is lost, nothing is counted twice."
      : "The law does not balance. Reports move while the page looks. If the difference stays, something is wrong.";
  if (note.textContent !== text) note.textContent = text;
  $("waiting").textContent = status.waiting;
  const { deleted } = status.total;
  $("deleted").textContent = deleted
    ? `Of those counted, ${count(deleted)} are of epochs whose totals were deleted (keep of the catalog, or hubbub forget): no answer contains them.`
    : "";
  note.className = `note ${status.complete ? (status.balanced ? "good" : "bad") : ""}`;
  const total = status.total;
  const part = (name, number) =>
    h(
      "div",
      { title: law[name] },
      h("span", { class: "muted" }, termName(name)),
      h("b", {}, term(number, status.waiting && status.complete)),
    );
  const sum = (names) =>
    names.flatMap((name, place) => [
      ...(place ? [h("i", {}, "+")] : []),
      part(name, total[name]),
    ]);
  const [incoming, places] = sides(total);
  $("equation").replaceChildren(...sum(incoming), h("i", {}, "="), ...sum(places));
}

function showFlow(total) {
  const stages = sides(total)[1].filter((name) => total[name] !== null);
  const rows = stages.map((name) => ({
    value: termName(name),
    estimate: total[name],
    low: total[name],
    high: total[name],
    detected: true,
  }));
  bars(
    $("flow"),
    rows,
    "Reports by where they are: " +
      stages.map((name) => `${termName(name)} ${count(total[name])}`).join(", "),
    { axis: "reports", format: rounded, most: Infinity },
  );
}

function showRate() {
  if (readings.length < 3) return; // one rate makes no line
  const points = readings.slice(1).map((now, i) => {
    const rate = (now.counted - readings[i].counted) / ((now.time - readings[i].time) / 1000);
    return { time: now.time, share: rate, low: rate, high: rate };
  });
  const last = points.at(-1).share;
  lines(
    $("rate"),
    [{ value: "counted a second", points }],
    `Counted a second, now ${count(last)}`,
    { axis: "reports a second", format: rounded, most: Infinity },
  );
}

/**
 * Whether a window needs attention: it is out of balance, or some of its reports wait or were lost.
 */
const unsettled = (counts) =>
  counts.balanced === false || [counts.pooled, counts.in_flight, counts.rejected, counts.withheld].some(Boolean);

/** Shows the newest windows and those that need attention, with the terms that any of them has. */
async function showWindows(status) {
  const all = [...status.windows].sort((a, b) => b.date.localeCompare(a.date));
  const some = all.filter((counts, place) => place < NEWEST || unsettled(counts));
  const rows = address.state.rows === "all" ? all : some;
  const idle = Object.keys(law).filter((name) => !all.some((counts) => counts[name]));
  const none = idle.filter((name) => name !== "pooled" || !status.waiting);
  const nothing = none.length ? `; none ${status.complete ? "" : "known "}in any of them: ${none.map(termName).join(", ")}` : "";
  const title = `${count(rows.length)} of ${several(all.length, "stream and epoch", "streams and epochs")}${nothing}`;
  await fillAnswer($("windows"), title, "status", status, rows, { without: idle });
  const other = address.state.rows === "all" ? ["newest", "Fewer"] : ["all", "All"];
  const change = () => {
    address.go({ rows: other[0] });
    refresh();
  };
  $("rows").replaceChildren(...(some.length < all.length ? [button(other[1], change)] : []));
}

async function refresh() {
  if (document.hidden) return;
  try {
    const status = await ask("/v1/status");
    const counts = (await columnsOf("status")).filter((column) => column.unit === "count");
    law = Object.fromEntries(counts.map((count) => [count.field, count.meaning]));
    readings.push({ time: new Date(), counted: status.total.counted });
    if (readings.length > 150) readings.shift();
    showLaw(status);
    showFlow(status.total);
    showRate();
    await showWindows(status);
  } catch (error) {
    $("law").className = "";
    showState($("law"), error, {});
  }
  ready();
}

await refresh();
setInterval(refresh, EVERY);
watchArrivals();
