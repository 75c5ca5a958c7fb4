// Shows single reports of a development installation as they arrive. A production installation
// shows only counts.
import { $, ask, atMost, fill, h, nameElement, percent } from "./shell.js";

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

/** A probability, never as certain or impossible if it is not. */
function chanceText(chance) {
  if (chance > 0 && chance < 0.001) return "less than 0.1%";
  return chance > 0.999 && chance < 1 ? "more than 99.9%" : percent(chance);
}

/** The cell of an arrival's likeliest values, each with its probability. */
function meant(arrival) {
  if (!arrival.meanings.length) return h("td", { class: "meant" }, "any string");
  const meanings = arrival.meanings.flatMap(({ value, probability }, place) => [
    place ? ", " : null,
    nameElement(value),
    ` ${chanceText(probability)}`,
  ]);
  return h("td", { class: "meant" }, meanings, arrival.others ? `, or ${arrival.others} others` : null);
}

const row = (arrival) => [
  arrival.at.slice(11, 19),
  nameElement(arrival.stream),
  arrival.date,
  atMost(arrival.epsilon),
  nameElement(arrival.payload, HEX),
  meant(arrival),
];

/**
 * Shows new arrivals repeatedly, until the service answers that it is a production installation.
 */
export async function watchArrivals() {
  for (let isShown = true; isShown;) {
    // the conservation law above shows the error
    if (!document.hidden) isShown = await look().catch(() => true);
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

/**
 * Requests the arrivals since the last request and shows them. Returns whether this installation
 * shows any.
 */
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
