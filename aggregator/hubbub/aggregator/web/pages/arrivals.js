// Reports of a development installation as they come; production tells counts alone.
import { $, ask, fill, h, named, percent } from "./shell.js";

const EVERY = 1000;
const MOST = 100;
const HEX = 64;
let last = 0;
let held = [];

const HEADER = [
  "counted (UTC)",
  "metric",
  "epoch",
  "epsilon",
  "sent, in hex",
  "what it could have meant",
];

/** The likeliest values, each with its probability. */
function meant(one) {
  if (!one.meanings.length) return h("td", { class: "meant" }, "any string");
  const told = one.meanings.flatMap(({ value, probability }, place) => [
    place ? ", " : null,
    named(value),
    ` ${percent(probability)}`,
  ]);
  return h("td", { class: "meant" }, told, one.others ? `, or ${one.others} others` : null);
}

const row = (one) => [
  one.at.slice(11, 19),
  named(one.stream),
  one.date,
  one.epsilon.toFixed(3),
  named(one.payload, HEX),
  meant(one),
];

/** Show what comes, until it is known that this is production, which tells of no single report. */
export async function watchArrivals() {
  for (let tells = true; tells;) {
    if (!document.hidden) tells = await look().catch(() => true); // the law says what is wrong
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

/** Ask for what came since the last look, and show it. Whether any is told of here. */
async function look() {
  const found = await ask("/v1/arrivals", { after: last });
  if (!found.notice) return false;
  $("arriving").hidden = false;
  if (found.arrivals.length) last = found.arrivals.at(-1).number;
  else if (held.length) return true;
  held = [...found.arrivals.reverse(), ...held].slice(0, MOST);
  const said = held.length ? `The newest ${held.length}, the last first` : "None yet";
  fill($("arrivals"), said, HEADER, held.map(row));
  return true;
}
