// Reports of a development installation as they come; production tells counts alone.
import { $, ask, fill, h, nameElement, percent } from "./shell.js";

const EVERY = 1000;
const MOST = 100;
const HEX = 64;
let last = 0;
let arrivals = [];

const HEADER = [
  "counted (UTC)",
  "metric",
  "epoch",
  "epsilon",
  "sent, in hex",
  "what it could have meant",
];

/** The likeliest values, each with its probability. */
function meant(arrival) {
  if (!arrival.meanings.length) return h("td", { class: "meant" }, "any string");
  const meanings = arrival.meanings.flatMap(({ value, probability }, place) => [
    place ? ", " : null,
    nameElement(value),
    ` ${percent(probability)}`,
  ]);
  return h("td", { class: "meant" }, meanings, arrival.others ? `, or ${arrival.others} others` : null);
}

const row = (arrival) => [
  arrival.at.slice(11, 19),
  nameElement(arrival.stream),
  arrival.date,
  arrival.epsilon.toFixed(3),
  nameElement(arrival.payload, HEX),
  meant(arrival),
];

/** Show what comes, until it is known that this is production, which tells of no single report. */
export async function watchArrivals() {
  for (let isShown = true; isShown;) {
    if (!document.hidden) isShown = await look().catch(() => true); // the law says what is wrong
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

/** Ask for what came since the last look, and show it. Whether any is told of here. */
async function look() {
  const answer = await ask("/v1/arrivals", { after: last });
  if (!answer.notice) return false;
  $("arriving").hidden = false;
  if (answer.arrivals.length) last = answer.arrivals.at(-1).number;
  else if (arrivals.length) return true;
  arrivals = [...answer.arrivals.reverse(), ...arrivals].slice(0, MOST);
  const title = arrivals.length ? `The newest ${arrivals.length}, the last first` : "None yet";
  fill($("arrivals"), title, HEADER, arrivals.map(row));
  return true;
}
