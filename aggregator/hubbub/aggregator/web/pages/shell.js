// The functions that all pages share: requests to the service, elements, and safe display of
// foreign texts.

/** A new element. Children that are text become text nodes, never markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button without emphasis. does: called on a click. */
export function button(label, does, attributes = {}) {
  const control = h("button", { type: "button", class: "quiet", ...attributes }, label);
  control.addEventListener("click", () => does());
  return control;
}

export const $ = (id) => document.getElementById(id);

/**
 * A value as safe text: invisible characters are written as codes, and a long value is cut in its
 * middle, because names differ at their ends.
 */
export function printable(value, longest = 80) {
  const whole = [...value];
  const half = Math.floor((longest - 1) / 2);
  const nodes =
    whole.length > longest
      ? [...whole.slice(0, longest - 1 - half), "…", ...whole.slice(whole.length - half)]
      : whole;
  return nodes
    .map((c) =>
      /[\p{C}\p{Zl}\p{Zp}]/u.test(c) ? `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}` : c,
    )
    .join("");
}

/** A label with the unit of the answer, if it has one. */
export const inUnit = (label, answer) => (answer.unit ? `${label}, in ${printable(answer.unit)}` : label);

/** The same text as an element that isolates the text's writing direction. */
export const nameElement = (value, longest) => h("bdi", {}, printable(value, longest));

// Adding 0 makes 0 of -0.
export const count = (number) => (Math.round(number) + 0).toLocaleString("en");
export const figure = (number, digits = 5) =>
  number.toLocaleString("en", { maximumSignificantDigits: digits });
const PLACES = { minimumFractionDigits: 3, maximumFractionDigits: 3 };
/** A bound with so many digits, or with three places: rounded up, except for errors of floats. */
export const atMost = (bound, digits) =>
  (bound * (1 - 1e-12)).toLocaleString("en", {
    ...(digits ? { maximumSignificantDigits: digits } : PLACES),
    roundingMode: "ceil",
  });
/** The approximate standard error behind an interval: a quarter of its width. */
export const errorOf = ({ low, high }) => (high - low) / 4;
// Moves nearly by half of the last place, so that an end which has no further digits stays.
const OUTWARDS = { low: -0.499999, high: 0.499999 };
/**
 * A number in a metric's own unit, to two digits of its standard error, or to five digits if the
 * error is unknown. end: "low" or "high" for an end of an interval, which is rounded outwards.
 */
export function measured(number, error = 0, end = "") {
  if (!Number.isFinite(number)) return figure(number);
  const [size, digits] = error > 0 ? [error, 2] : [Math.abs(number) || 1, 5];
  let places = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 12);
  // An edge of a bucket is the same as either end.
  if (end && !(error > 0)) places += [1, 2].find((more) => Number(number.toFixed(places + more)) === number) ?? 0;
  const moved = number + (OUTWARDS[end] ?? 0) * 10 ** -places;
  const rounded = Number(moved.toFixed(places)) + 0; // without the sign of a negative zero
  const distance = Math.abs(number);
  if (end && !rounded && distance >= 1e-12 && distance < size) return measured(number, distance, end);
  const least = error > 0 ? places : 0;
  return rounded.toLocaleString("en", { minimumFractionDigits: least, maximumFractionDigits: places });
}
/** The same with five digits, for a number or an end. */
export const inFull = (number, end) => measured(number, 0, end);
export const several = (number, noun, many = `${noun}s`) =>
  `${count(number)} ${number === 1 ? noun : many}`;
export const percent = (share, digits = 1) =>
  `${(Number((100 * share).toFixed(digits)) + 0).toFixed(digits)}%`;

/** Whether an answer's rows are numbers in the metric's own unit, and not counts. */
export const ofMeans = ({ kind }) => ["mean", "vector", "rate", "activity"].includes(kind);

/** A text of the service as a sentence. */
export function asSentence(text) {
  const safe = printable(text, 600);
  return `${safe[0].toUpperCase()}${safe.slice(1)}${safe.endsWith(".") ? "" : "."}`;
}

/** The notes of an answer as sentences. */
export const notesText = ({ notes }) => notes.map((note) => ` ${asSentence(note)}`).join("");

/** A moment as text, with its time zone. */
export const utc = (time) => `${time.slice(0, 16).replace("T", " ")} UTC`;

/** The notice of an answer; empty if the page already shows it at the top. */
export const noticeText = ({ notice }) =>
  notice && !document.querySelector("aside.notice")?.textContent.includes(notice)
    ? ` ${printable(notice, 400)}`
    : "";

/** The service refused a request. wait: the pause in seconds that the service asked for, if any. */
export class Refused extends Error {
  constructor(problem, wait) {
    super(problem.detail || problem.title);
    this.title = problem.title;
    this.status = problem.status;
    this.wait = wait;
  }
}

/** The service did not answer. */
export class Unreachable extends Error {}

/**
 * The JSON of the answer, if it has any. Asks the reader to log in if that is necessary.
 *
 * method: GET by default, or POST with a body.
 */
export async function ask(path, parameters = {}, body = null, method = null) {
  const answer = await request(path, parameters, body, method);
  return answer.status === 204 ? null : answer.json();
}

async function request(path, parameters, body, method = null) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(parameters)) {
    for (const child of [value].flat())
      if (child !== "" && child !== null) url.searchParams.append(name, child);
  }
  const headers = {};
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(url, {
    method: method ?? (body ? "POST" : "GET"),
    headers,
    body: body && JSON.stringify(body),
  }).catch((error) => {
    throw new Unreachable(error.message);
  });
  if (answer.status === 401) {
    const wanted = await answer.json().catch(() => ({}));
    // A slow answer may belong to a token that was replaced meanwhile.
    if (sessionStorage.getItem("token") === token) await askWho(wanted);
    return request(path, parameters, body, method);
  }
  if (!answer.ok) {
    throw new Refused(
      await answer.json().catch(() => ({ title: answer.statusText, status: answer.status })),
      Number(answer.headers.get("Retry-After")),
    );
  }
  return answer;
}

/** All metrics of the service. */
export async function everyMetric() {
  const metrics = [];
  for (let total = 1; metrics.length < total;) {
    const page = await ask("/v1/metrics", { first: metrics.length, number: 100 });
    if (!page.metrics.length) break;
    metrics.push(...page.metrics);
    total = page.total;
  }
  return metrics;
}

/** Downloads a file from the service under a name. */
export async function download(path, parameters, name) {
  const answer = await request(path, parameters, null);
  const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

let asking = null;

/** Asks the reader for a token, or opens the identity provider, which returns to this page. */
function askWho({ login, detail }) {
  asking ??= new Promise((resolve) => {
    const token = sessionStorage.getItem("token");
    const input = h("input", {
      type: "password",
      name: "token",
      autocomplete: "off",
      required: "",
    });
    const form = h(
      "form",
      { method: "dialog", class: "controls" },
      h("label", {}, "Token", input),
      h("button", {}, "Go on"),
    );
    const dialog = h(
      "dialog",
      { "aria-labelledby": "who-title" },
      h("h2", { id: "who-title" }, login ? "Log in, please" : "A token, please"),
      h("p", {}, description(token, login, detail)),
      login ? h("p", {}, h("a", { class: "button", href: wayIn() }, `Log in with ${login}`)) : null,
      login ? h("details", {}, h("summary", {}, "With a token instead"), form) : form,
    );
    dialog.querySelector("a")?.addEventListener("click", leave);
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      const token = input.value.trim();
      if (token) sessionStorage.setItem("token", token);
      else sessionStorage.removeItem("token");
      dialog.remove();
      asking = null;
      resolve();
    });
    dialog.showModal();
  });
  return asking;
}

function description(token, login, detail) {
  if (token) {
    const reason = login && detail ? ` (${detail})` : "";
    return `The token of this tab is refused${reason}: it has expired, was removed, or is mistyped. The operator of the service makes tokens with: hubbub keys token`;
  }
  if (!login) {
    return "This service requires a token: its operator makes tokens with hubbub keys token. The page keeps it until this tab is closed.";
  }
  return localStorage.getItem("known")
    ? "You are not logged in, or your session is over. The login leads back to this page."
    : "This service requires a login, which leads back to this page.";
}

const wayIn = () => `/login?to=${encodeURIComponent(location.pathname + location.search)}`;

/** Stores the page's state in this tab before a login. The strings after the # are never sent. */
function leave() {
  sessionStorage.removeItem("token");
  sessionStorage.setItem("left", JSON.stringify([location.pathname + location.search, location.hash]));
}

function comeBack() {
  const [page, hash] = JSON.parse(sessionStorage.getItem("left") ?? "[]");
  if (page === undefined) return;
  sessionStorage.removeItem("left");
  if (page === location.pathname + location.search && hash && !location.hash) {
    history.replaceState(history.state, "", hash);
  }
}

/** Shows in the page's head who is logged in, and a button to log out. */
async function showWho() {
  const me = await ask("/v1/me");
  if (me.way !== "login") return;
  localStorage.setItem("known", "yes");
  const until = new Date(1000 * me.until).toISOString();
  const out = button("Log out", async () => {
    const { to: target } = await ask("/logout", {}, null, "POST");
    localStorage.removeItem("known");
    location.assign(target);
  });
  const name = h("span", { title: `Until ${utc(until)}; groups: ${me.groups.join(", ")}` }, printable(me.name, 40));
  $("theme").before(h("span", { class: "who" }, name, out));
}

/** A row of a table. A cell is a text, an element, or a finished cell. */
function row(cells, tag = "td") {
  const attributes = tag === "th" ? { scope: "col" } : {};
  return h(
    "tr",
    {},
    cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : h(tag, attributes, cell))),
  );
}

/** Replaces the whole content of a table. */
export function fill(table, caption, header, rows) {
  table.replaceChildren(
    h("caption", {}, caption),
    h("thead", {}, row(header, "th")),
    h(
      "tbody",
      {},
      rows.map((cells) => row(cells)),
    ),
  );
}

export function ready() {
  $("main").setAttribute("aria-busy", "false");
}

comeBack();
showWho().catch(() => {}); // the page's own requests show the error

const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
$("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
});
