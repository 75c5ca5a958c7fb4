// Tables of answers. The service defines the columns and titles for all interfaces.
import { ask, atMost, button, count, errorOf, figure, fill, h, measured, nameElement, ofMeans, percent } from "./shell.js";

const LONGEST = 80;
const MOST = 4000;
const TELLING = 0.95;
const VERDICT = { true: "yes", false: "NO", null: "?" };
const UNKNOWN = { count: "?", verdict: "?", time: "never" };

/** A name as an element; the rest of a long name opens on demand. */
function whole(text) {
  if ([...text].length <= LONGEST) return nameElement(text, LONGEST);
  return h("details", {}, h("summary", {}, nameElement(text, LONGEST)), nameElement(text, MOST));
}

export const signed = (number, format) => format(number).replace(/^(?![-−])/, "+");
/** A change of a share in percentage points. */
export const inPoints = (change) =>
  signed(Number((100 * change).toFixed(2)) + 0, (points) => points.toFixed(2));
const marked = (text, kind) => h("td", { class: kind }, text);

/**
 * Functions that write a figure of each unit. error: the standard error of a mean in the metric's
 * unit. end: which end of an interval it is, if it is one.
 */
const WRITTEN = {
  text: (value) => whole(String(value)),
  count: (number) => count(number),
  reports: (number, error, end) => (error == null ? count(number) : measured(number, error, end)),
  share: (share) => percent(share),
  level: (level, error, end) => (error == null ? percent(level, 2) : measured(level, error, end)),
  change: (change, error, end) =>
    error == null ? inPoints(change) : signed(change, (number) => measured(number, error, end)),
  probability: (chance) => chance.toPrecision(2),
  confidence: (chance) => 
    chance >= TELLING ? percent(Math.min(Math.floor(1000 * chance), 999) / 1000) : "uncertain",
  epsilon: (epsilon) => atMost(epsilon),
  number: measured,
  flag: (flag) => marked(flag ? "yes" : "", flag ? "yes" : ""),
  verdict: (flag) => marked(VERDICT[flag], VERDICT[flag].toLowerCase()),
  time: (time) => time.replace("T00:00:00Z", "").replace("Z", "").replace("T", " "),
};

/** A cell; narrow screens hide the cells of spare columns. */
function withClass(column, content) {
  if (!column.spare) return content;
  if (content instanceof HTMLTableCellElement) {
    content.classList.add("spare");
    return content;
  }
  return h("td", { class: "spare" }, content);
}

let pending = null;

/** The columns of a question's table: fields, titles, units and meanings. */
export async function columnsOf(question) {
  pending ??= ask("/v1/columns").catch((error) => {
    pending = null; // the next request may succeed
    throw error;
  });
  return (await pending)[question];
}

/** Whether the figures are means in the metric's own unit, and not numbers of reports. */
const isOfMeans = (question, answer) =>
  question === "trend" ? answer.kind !== "values" : ofMeans(answer);

function cell(column, row, areMeans) {
  const [first, last] = [row[column.field], row[column.to]];
  areMeans ||= row.of_share === false; // an experiment has rows of both
  if (first === null) return UNKNOWN[column.unit] ?? "";
  const own = row.stderr ?? errorOf(column.field === "number" ? { low: row.number_low, high: row.number_high } : row);
  // Reports are whole numbers, unless their error is less than one of them.
  const hasDecimals = column.unit === "reports" && own > 0 && own < 1;
  const error = areMeans || column.unit === "number" || hasDecimals ? own : null;
  const format = WRITTEN[column.unit];
  if (!column.to) return format(first, error);
  const low = format(first, error, "low");
  return last === null ? `${low} or more` : `${low} to ${format(last, error, "high")}`;
}

/** A column's heading: text, or a button that sorts by the column. */
function heading(title, field, { order, sort } = {}) {
  if (!sort) return { inside: title, sorted: null };
  const now = order === field ? "ascending" : order === `-${field}` ? "descending" : null;
  // Names are sorted from A, p-values from the smallest, figures from the largest.
  const first = ["value", "rank", "p_value"].includes(field) ? field : `-${field}`;
  const other = first === field ? `-${field}` : field;
  const sorter = button(title, () => sort(order === first ? other : first), { class: "sort" });
  if (now) sorter.append(now === "ascending" ? " ▲" : " ▼");
  return { inside: sorter, sorted: now };
}

/**
 * Fills a table with the rows of an answer.
 *
 * sorting: the current order, `sort`, which requests another order, and `without`, the fields to
 * leave out; all may be missing.
 */
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
