// The states that replace an answer: what happened, why, and what to do next.
import { Refused, Unreachable, asSentence, button, count, h, printable } from "./shell.js";

const AGAIN_SECONDS = 5;
// Kinds of metrics that report an event without a value.
const VALUELESS = ["activity", "retention"];
let timer = null;

function state(heading, paragraphs, ...actions) {
  return h(
    "div",
    { class: "state" },
    h("h3", {}, heading),
    paragraphs.filter(Boolean).map((paragraph) => h("p", {}, paragraph)),
    actions.some(Boolean) ? h("p", { class: "actions" }, actions) : null,
  );
}

/**
 * Shows why there is no answer.
 *
 * metric: the requested metric, if it is known. again: repeats the request. remedies: what the
 * reader may do, by name: `all` requests all epochs, `reset` the original question, `without` the
 * question without lists.
 */
export function showState(place, error, { metric = null, again = null, remedies = {} } = {}) {
  clearTimeout(timer);
  const retry = again && button("Try again", again);
  const shownState = stateOf(error, metric, retry, remedies);
  place.replaceChildren(shownState);
  lowerHeading(place);
  if (again && isTemporary(error)) {
    timer = setTimeout(again, 1000 * (error.wait || AGAIN_SECONDS));
  }
}

/** Lowers the heading of a state by one level if it stands in a section. */
export function lowerHeading(place) {
  if (place.closest("section")) return;
  for (const low of place.querySelectorAll(".state h3")) {
    low.replaceWith(h("h2", {}, low.textContent));
  }
}

const isTemporary = (error) => error instanceof Unreachable || [429, 503].includes(error.status);

function stateOf(error, metric, retry, remedies) {
  if (error instanceof Unreachable) {
    return state(
      "The service does not answer",
      ["Anything below is an earlier answer. This page tries again by itself."],
      retry,
    );
  }
  if (!(error instanceof Refused)) return state("This page failed", [printable(error.message, 400)]);
  const text = printable(error.message, 600);
  switch (error.title) {
    case "BatchTooSmall":
    case "TooFewEpochs":
      if (metric) return tooFewReports(metric, remedies);
      return state(error.title === "TooFewEpochs" ? "Too few epochs" : "Too few reports", [text], retry);
    case "NothingToLookFor":
      return unlisted(metric);
    case "UnknownMetric":
      return state(
        "Unknown metric",
        [text, "The link may be from another installation, or older than a metric's new name."],
        h("a", { href: "/" }, "All metrics"),
      );
    case "UnknownList":
      return state(
        "No such list",
        [text],
        remedies.without && button("Show without saved lists", remedies.without),
      );
    case "BadParameter":
    case "Malformed":
      return state(
        "This question is not possible",
        [text],
        remedies.reset && button("Start over", remedies.reset),
      );
    default:
      return other(error, text, retry);
  }
}

function other(error, paragraphs, retry) {
  if (error.status === 403) return state("This token may not", [paragraphs]);
  if (error.status === 429) return state("Too many questions at once", [paragraphs], retry);
  if (error.status === 503) return state("No answer for now", [paragraphs], retry);
  return state("The service failed", [paragraphs], retry);
}

/** The state of a metric with no reports, or too few. */
export function tooFewReports(metric, remedies = {}) {
  const many = count(metric.min_batch);
  if (!metric.reports && !metric.waiting && !metric.withheld) {
    const isUnknown = metric.waiting === null;
    const waits = isUnknown ? "; the number of reports at the shuffler is unknown here" : "";
    return state(isUnknown ? "No answer yet" : "Nothing was reported yet", [
      metric.until_first_batch
        ? asSentence(metric.until_first_batch)
        : `The first answer comes with ${many} report${metric.min_batch === 1 ? "" : "s"}${waits}.`,
      metric.figures && !VALUELESS.includes(metric.figures) && `A device reports a ${metric.figures} once its ${metric.epoch_length} is over.`,
      "An app reports by:",
      h("code", {}, `client.report(${JSON.stringify(metric.name)}${VALUELESS.includes(metric.figures) ? "" : ", …"})`),
    ]);
  }
  return state(
    "Too few reports for an answer",
    [
      `An answer needs ${many} reports, so that each hides in a crowd; the selected epochs have fewer.`,
      metric.until_first_batch
        ? asSentence(metric.until_first_batch)
        : metric.waiting &&
        `${count(metric.waiting)} wait at the shuffler, until there are enough of them or until their epoch is over.`,
      metric.reports < metric.min_batch &&
        "Wait for more reports, or give the metric longer epochs in the catalog.",
    ],
    metric.reports >= metric.min_batch && remedies.all && button("Show all epochs", remedies.all),
  );
}

/** The state of a metric over strings if no string was named. */
export function unlisted(metric) {
  return state("Which strings?", [
    "This metric is over strings, and no candidates are listed. Write some above, one per line, or choose a saved list.",
    h(
      "span",
      {},
      "To have them each time: ",
      h("code", {}, "hubbub candidates add NAME FILE"),
      ", or in the catalog ",
      h("code", {}, `candidates = "${metric?.name ?? "strings"}.txt"`),
      ".",
    ),
  ]);
}
