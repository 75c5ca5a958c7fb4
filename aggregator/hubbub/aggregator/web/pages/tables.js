// Tables of answers: which columns, under which titles, the service says once for every face.
import { ask, button, count, figure, fill, h, measured, nameElement, ofMeans, percent } from "./shell.js";

const LONGEST = 80;
const MOST = 4000;
const TELLING = 0.95;
const VERDICT = { true: "yes", false: "NO", null: "?" };
const UNKNOWN = { count: "?", verdict: "?", time: "never" };

/** A name as it is; a long one's rest on demand. */
function whole(text) {
  if ([...text].length <= LONGEST) return nameElement(text, LONGEST);
  return h("details", {}, h("summary", {}, nameElement(text, LONGEST)), nameElement(text, MOST));
}

const signed = (number, format) => (number > 0 ? "+" : "") + format(number);
const marked = (text, kind) => h("td", { class: kind }, text);

/** How a figure of each unit is written; error: of means, which are in the metric's own unit. */
const WRITTEN = {
  text: (value) => whole(String(value)),
  count: (number) => count(number),
  reports: (number, error) => (error == null ? count(number) : measured(number, error)),
  share: (share) => percent(share),
  level: (level, error) => (error == null ? percent(level, 2) : measured(level, error)),
  change: (change, error) =>
    signed(change, (number) => (error == null ? (100 * number).toFixed(2) : measured(number, error))),
  probability: (chance) => chance.toPrecision(2),
  confidence: (chance) => 
    chance >= TELLING ? percent(Math.min(Math.floor(1000 * chance), 999) / 1000) : "too close to call",
  epsilon: (epsilon) => epsilon.toFixed(3),
  number: (number, error) => measured(number, error),
  flag: (flag) => marked(flag ? "yes" : "", flag ? "yes" : ""),
  verdict: (flag) => marked(VERDICT[flag], VERDICT[flag].toLowerCase()),
  time: (time) => time.replace("T00:00:00Z", "").replace("Z", "").replace("T", " "),
};

/** A cell that a narrow screen leaves out, if it may. */
function withClass(column, content) {
  if (!column.spare) return content;
  if (content instanceof HTMLTableCellElement) {
    content.classList.add("spare");
    return content;
  }
  return h("td", { class: "spare" }, content);
}

let pending = null;

/** What tables of a question show: fields, titles, units and meanings. */
export async function columnsOf(question) {
  pending ??= ask("/v1/columns").catch((error) => {
    pending = null; // the next look may be luckier
    throw error;
  });
  return (await pending)[question];
}

/** Whether the figures are means, in the metric's own unit, and not numbers of reports. */
const isOfMeans = (question, answer) =>
  question === "trend" ? answer.kind !== "values" : ofMeans(answer);

function cell(column, row, areMeans) {
  const [first, last] = [row[column.field], row[column.to]];
  if (first === null) return UNKNOWN[column.unit] ?? "";
  const error = areMeans || column.unit === "number" ? row.stderr ?? (row.high - row.low) / 4 : null;
  const format = WRITTEN[column.unit];
  if (!column.to) return format(first, error);
  return last === null ? `${format(first, error)} or more` : `${format(first, error)} to ${format(last, error)}`;
}

/** A column's heading: text, or a button that sorts by it. */
function heading(title, field, { order, sort } = {}) {
  if (!sort) return { inside: title, sorted: null };
  const now = order === field ? "ascending" : order === `-${field}` ? "descending" : null;
  // Names from A, chances from the smallest, figures from the largest.
  const first = ["value", "rank", "p_value"].includes(field) ? field : `-${field}`;
  const other = first === field ? `-${field}` : field;
  const sorter = button(title, () => sort(order === first ? other : first), { class: "sort" });
  if (now) sorter.append(now === "ascending" ? " ▲" : " ▼");
  return { inside: sorter, sorted: now };
}

/** Fill a table with rows of an answer to a question.
 *  sorting: the order that the rows are in, and `sort`, which asks for another; none without; and
 *  `without`: fields that are left out. */
export async function fillAnswer(table, caption, question, answer, rows, sorting = {}) {
  const areMeans = isOfMeans(question, answer);
  const columns = (await columnsOf(question)).filter(
    (column) => (column.of_means || !areMeans) && !sorting.without?.includes(column.field),
  );
  const level = `${figure(100 * (answer.confidence ?? 0), 6)}%`;
  fill(
    table,
    caption,
    columns.map((column) => {
      const title = ((areMeans && column.mean_title) || column.title).replace("{level}", level);
      const { inside, sorted: direction } = heading(title, column.field, sorting);
      const className = column.spare ? "spare" : null;
      return h("th", { scope: "col", title: column.meaning, class: className, "aria-sort": direction }, inside);
    }),
    rows.map((row) => columns.map((column) => withClass(column, cell(column, row, areMeans)))),
  );
}
