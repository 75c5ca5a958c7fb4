// What every page shares: asking the service, building elements, showing what people said safely.

/** An element. Children that are text become text, never markup. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A quiet button. */
export function button(label, does, attributes = {}) {
  const made = h("button", { type: "button", class: "quiet", ...attributes }, label);
  made.addEventListener("click", () => does());
  return made;
}

export const $ = (id) => document.getElementById(id);

/** A value as it may be shown: cut, and with characters that are not seen written out. */
export function shown(value, longest = 80) {
  const text = [...value]
    .slice(0, longest + 1)
    .map((c) =>
      /[\p{C}\p{Zl}\p{Zp}]/u.test(c) ? `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}` : c,
    );
  return text.length > longest ? text.slice(0, longest).join("") + "…" : text.join("");
}

/** The same as an element that keeps its own direction of writing to itself. */
export const named = (value, longest) => h("bdi", {}, shown(value, longest));

export const count = (number) => Math.round(number).toLocaleString("en");
export const figure = (number, digits = 5) =>
  number.toLocaleString("en", { maximumSignificantDigits: digits });
export const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;

/** A moment as people say it, with its zone. */
export const utc = (time) => `${time.slice(0, 16).replace("T", " ")} UTC`;

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

/** The answer's JSON, if it has any. Asks for a token where one is needed.
 *  method: GET, or POST where there is a body, unless it is said. */
export async function ask(path, parameters = {}, body = null, method = null) {
  const answer = await request(path, parameters, body, method);
  if (answer.status === 401) {
    await askForToken(Boolean(sessionStorage.getItem("token")));
    return ask(path, parameters, body, method);
  }
  return answer.status === 204 ? null : answer.json();
}

async function request(path, parameters, body, method = null) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of [value].flat())
      if (one !== "" && one !== null) url.searchParams.append(name, one);
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
  if (!answer.ok && answer.status !== 401) {
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

function askForToken(refused) {
  asking ??= new Promise((resolve) => {
    const input = h("input", {
      type: "password",
      name: "token",
      autocomplete: "off",
      required: "",
    });
    const dialog = h(
      "dialog",
      { "aria-labelledby": "token-title" },
      h("h2", { id: "token-title" }, "A token, please"),
      h(
        "p",
        {},
        refused
          ? "The token of this tab is not taken: it has expired, was removed, or has a slip. Who runs the service makes one with: hubbub keys token"
          : "This service answers to who has a token. It is kept until this tab is closed.",
      ),
      h(
        "form",
        { method: "dialog", class: "controls" },
        h("label", {}, "Token", input),
        h("button", {}, "Go on"),
      ),
    );
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", input.value.trim());
      dialog.remove();
      asking = null;
      resolve();
    });
    dialog.showModal();
  });
  return asking;
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
      rows.map((one) => row(one)),
    ),
  );
}

export function ready() {
  $("main").setAttribute("aria-busy", "false");
}

const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
$("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
});
