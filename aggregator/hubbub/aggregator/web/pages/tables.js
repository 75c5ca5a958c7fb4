// Tables of answers: which columns, under which titles, the service says once for every face.
import { ask, count, figure, fill, h, named, percent } from "./shell.js";

const LONGEST = 200;
const TELLING = 0.95;
const VERDICT = { true: "yes", false: "NO", null: "?" };
const UNKNOWN = { count: "?", verdict: "?", time: "never" };

const signed = (number, format) => (number > 0 ? "+" : "") + format(number);
const marked = (text, kind) => h("td", { class: kind }, text);

/** How a figure of each unit is written; `means`: the answer is in the metric's own unit. */
const WRITTEN = {
  text: (given) => named(String(given), LONGEST),
  count: (number) => count(number),
  reports: (number, means) => (means ? figure(number) : count(number)),
  share: (share) => percent(share),
  level: (level, means) => (means ? figure(level) : percent(level, 2)),
  change: (change, means) =>
    signed(change, (number) => (means ? figure(number) : percent(number, 2))),
  probability: (chance) => chance.toPrecision(2),
  confidence: (sure) => (sure >= TELLING ? percent(sure) : "too close to call"),
  epsilon: (epsilon) => epsilon.toFixed(3),
  flag: (flag) => marked(flag ? "yes" : "", flag ? "yes" : ""),
  verdict: (flag) => marked(VERDICT[flag], VERDICT[flag].toLowerCase()),
  time: (time) => time.replace("T00:00:00Z", "").replace("Z", "").replace("T", " "),
};

let asked = null;

/** What tables of a question show: fields, titles, units and meanings. */
export async function columnsOf(question) {
  asked ??= ask("/v1/columns").catch((error) => {
    asked = null; // the next look may be luckier
    throw error;
  });
  return (await asked)[question];
}

/** Whether the figures are means, in the metric's own unit, and not numbers of reports. */
const ofMeans = (question, answer) =>
  question === "trend" ? answer.kind !== "values" : answer.kind === "mean";

function cell(column, row, means) {
  const ends = column.to ? [row[column.field], row[column.to]] : [row[column.field]];
  if (ends.includes(null)) return UNKNOWN[column.unit] ?? "";
  const written = ends.map((one) => WRITTEN[column.unit](one, means));
  return written.length === 1 ? written[0] : written.join(" to ");
}

/** Fill a table with rows of an answer to a question. */
export async function fillAnswer(table, caption, question, answer, rows) {
  const means = ofMeans(question, answer);
  const columns = (await columnsOf(question)).filter((one) => one.of_means || !means);
  const level = `${figure(100 * (answer.confidence ?? 0), 6)}%`;
  fill(
    table,
    caption,
    columns.map((one) =>
      h(
        "th",
        { scope: "col", title: one.meaning },
        ((means && one.mean_title) || one.title).replace("{level}", level),
      ),
    ),
    rows.map((row) => columns.map((one) => cell(one, row, means))),
  );
}
