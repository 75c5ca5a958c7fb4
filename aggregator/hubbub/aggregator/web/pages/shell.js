// What every page shares: asking the service, building elements, showing what people said safely.

/** An element. Children that are text become text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A quiet button. */
export function button(label, does, attributes = {}) {
  const control = h("button", { type: "button", class: "quiet", ...attributes }, label);
  control.addEventListener("click", () => does());
  return control;
}

export const $ = (id) => document.getElementById(id);

/** A value as it may be shown: with characters that are not seen written out; cut in its middle if
 *  it must be, since names differ at their ends. */
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

/** What numbers are, with the unit that an answer has. */
export const inUnit = (label, answer) => (answer.unit ? `${label}, in ${printable(answer.unit)}` : label);

/** The same as an element that keeps its own direction of writing to itself. */
export const nameElement = (value, longest) => h("bdi", {}, printable(value, longest));

export const count = (number) => Math.round(number).toLocaleString("en");
export const figure = (number, digits = 5) =>
  number.toLocaleString("en", { maximumSignificantDigits: digits });
/** A number in a metric's own unit, to two digits of its standard error; to five where that is unknown. */
export function measured(number, error = 0) {
  if (!(error > 0) || !Number.isFinite(number)) return figure(number);
  const places = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 12);
  return number.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
}
export const several = (number, noun, many = `${noun}s`) =>
  `${count(number)} ${number === 1 ? noun : many}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;

/** Whether an answer's rows are numbers in the metric's own unit, and no counts. */
export const ofMeans = ({ kind }) => ["mean", "vector", "rate", "activity"].includes(kind);

/** A moment as people say it, with its zone. */
export const utc = (time) => `${time.slice(0, 16).replace("T", " ")} UTC`;

/** What stands before an answer, unless the page has said it on top of all. */
export const noticeText = ({ notice }) =>
  notice && !document.querySelector("aside.notice")?.textContent.includes(notice)
    ? ` ${printable(notice, 400)}`
    : "";

/** The service refused. wait: seconds until it may not, where it says so. */
export class Refused extends Error {
  constructor(problem, wait) {
    super(problem.detail || problem.title);
    this.title = problem.title;
    this.status = problem.status;
    this.wait = wait;
  }
}

/** Nobody answered. */
export class Unreachable extends Error {}

/** The answer's JSON, if it has any. Asks who it is where that has to be known.
 *  method: GET, or POST where there is a body, unless it is said. */
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
    // A slow answer may be about a token that was replaced meanwhile.
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

/** All metrics there are. */
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

/** A file of the service's, kept under a name. */
export async function download(path, parameters, name) {
  const answer = await request(path, parameters, null);
  const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

let asking = null;

/** By a token, or at the provider, which comes back to this page. */
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
    ? "You are not logged in, or your session is over. You come back to this page."
    : "This service requires a login. You come back to this page.";
}

const wayIn = () => `/login?to=${encodeURIComponent(location.pathname + location.search)}`;

/** What stands after the # has strings that somebody typed: it stays in this tab meanwhile. */
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

/** In the head of the page: who is logged in, and the way out. */
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

/** A table's row; a cell may be a text, an element, or a cell of its own. */
function row(cells, tag = "td") {
  const attributes = tag === "th" ? { scope: "col" } : {};
  return h(
    "tr",
    {},
    cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : h(tag, attributes, cell))),
  );
}

/** A table's whole content. */
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
showWho().catch(() => {}); // what the page asks says what is wrong

const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
$("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
});
