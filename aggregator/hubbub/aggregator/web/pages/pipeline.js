// The pipeline as it runs: the conservation law and its terms, asked for every two seconds.
/* global d3 */
import { $, ask, count, fill, h, named, ready, tell } from "./shell.js";
import { bars, lines } from "./charts.js";

const EVERY = 2000;
const MEANINGS = {
  pooled: "wait at the shuffler for a crowd",
  in_flight: "on their way in a batch",
  counted: "in the totals",
  duplicate: "sent again, counted once",
  rejected: "refused by the aggregator, with a reason",
  withheld: "too few to hide in a crowd; deleted",
};
const TERMS = Object.keys(MEANINGS);
const worded = (name) => name.replace("_", " ");
/** A term, which is not known where the shuffler did not tell it. */
const term = (number) => (number === null ? "?" : count(number));
const MOST_WINDOWS = 200;
const seen = [];

function showLaw(status) {
  const law = $("law");
  const said = !status.complete
    ? "The shuffler cannot be asked from here: only the aggregator’s terms are shown."
    : status.balanced
      ? "The law balances: nothing is lost, nothing is counted twice."
      : "The law does not balance. Reports move while we look; if this stays, something is wrong.";
  if (law.textContent !== said) law.textContent = said;
  law.className = `note ${status.complete ? (status.balanced ? "good" : "bad") : ""}`;
  const total = status.total;
  const part = (name, number) =>
    h(
      "div",
      { title: MEANINGS[name] ?? "taken over by the shuffler" },
      h("span", { class: "muted" }, worded(name)),
      h("b", {}, term(number)),
    );
  $("equation").replaceChildren(
    part("acknowledged", total.acknowledged),
    h("i", {}, "="),
    ...TERMS.flatMap((name, place) => [
      place ? h("i", {}, "+") : null,
      part(name, total[name]),
    ]).filter(Boolean),
  );
}

function showFlow(total) {
  const told = TERMS.filter((name) => total[name] !== null);
  const rows = told.map((name) => ({
    value: worded(name),
    estimate: total[name],
    low: total[name],
    high: total[name],
    detected: true,
  }));
  bars(
    $("flow"),
    rows,
    "Reports by where they are: " +
      told.map((name) => `${worded(name)} ${count(total[name])}`).join(", "),
    d3.format("~s"),
  );
}

function showRate() {
  if (seen.length < 2) return;
  const points = seen.slice(1).map((now, i) => {
    const rate = (now.counted - seen[i].counted) / ((now.time - seen[i].time) / 1000);
    return { time: now.time, share: rate, low: rate, high: rate };
  });
  const last = points.at(-1).share;
  lines(
    $("rate"),
    [{ value: "counted a second", points }],
    `Counted a second, now ${count(last)}`,
    d3.format("~s"),
  );
}

function showWindows(windows) {
  const newest = [...windows].sort((a, b) => b.epoch - a.epoch).slice(0, MOST_WINDOWS);
  const balance = { true: "yes", false: "no", null: "?" };
  const rows = newest.map((one) => [
    named(one.stream),
    String(one.epoch),
    term(one.acknowledged),
    ...TERMS.map((name) => term(one[name])),
    h("td", { class: balance[one.balanced] }, balance[one.balanced]),
  ]);
  fill(
    $("windows"),
    `${newest.length} of ${windows.length} streams and epochs`,
    ["stream", "epoch", "acknowledged", ...TERMS.map(worded), "balanced"],
    rows,
  );
}

async function look() {
  if (document.hidden) return;
  try {
    const status = await ask("/v1/status");
    seen.push({ time: new Date(), counted: status.total.counted });
    if (seen.length > 150) seen.shift();
    showLaw(status);
    showFlow(status.total);
    showRate();
    showWindows(status.windows);
  } catch (error) {
    tell($("law"), error);
  }
  ready();
}

await look();
setInterval(look, EVERY);
