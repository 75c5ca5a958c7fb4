/**
 * <hubbub-ledger>: shows what left this device, the remaining budget and who runs the services, and
 * lets the person opt out.
 *
 * It creates elements and texts, but no markup from strings and no style attribute, so it works
 * under a strict Content-Security-Policy and Trusted Types. It uses the colours and fonts of the
 * page.
 */
import type { Runs } from "../catalog/bundle.js";
import type { Client } from "../client/client.js";
import { BadParameter, StateUnusable } from "../errors.js";
import type { LedgerView, MetricView, PayloadView } from "../client/ledger_view.js";

/**
 * The texts of the element, in the page's language. Numbers and dates follow the page's `lang`
 * automatically.
 */
export interface LedgerWords {
  readonly title: string;
  readonly switch: string;
  readonly forget: string;
  readonly forgotten: string;
  readonly on: string;
  readonly off: string;
  readonly unusable: string;
  readonly caption: string;
  readonly metric: string;
  readonly epsilon: string;
  readonly spent: string;
  readonly reports: string;
  readonly of: string;
  readonly ofBoth: string;
  readonly notAsked: string;
  readonly crowd: string;
  readonly crowdOfDays: string;
  readonly crowdForLife: string;
  readonly crowds: string;
  readonly shuffler: string;
  readonly aggregator: string;
  readonly apart: string;
  readonly together: string;
  readonly issuer: string;
  readonly notice: string;
  readonly payloads: string;
  readonly switchLocal: string;
  readonly onLocal: string;
  readonly counted: string;
}

/** The element, available after `defineLedger()`. */
export interface LedgerElement extends HTMLElement {
  /** The client whose ledger the element shows. */
  client: Client | null;
  /** Texts that replace the English ones; texts that are not given stay English. */
  words: Partial<LedgerWords>;
  /**
   * Reads the ledger again. The element does so itself when it is added to a page, when this page
   * reports or sends, and when it becomes visible again.
   */
  refresh(): Promise<void>;
}

declare global {
  interface HTMLElementTagNameMap {
    "hubbub-ledger": LedgerElement;
  }
}

const WORDS: LedgerWords = {
  title: "What leaves this device",
  switch: "Send randomized answers",
  forget: "Stop, and forget all answers",
  forgotten: "All answers are forgotten here; nothing is sent.",
  on: "Randomized answers are sent.",
  off: "Nothing is sent.",
  unusable: "This device cannot store anything, so nothing is sent.",
  caption:
    "Epsilon is how much a report can reveal about you, in nats: the smaller, the more is hidden.",
  metric: "Question",
  epsilon: "Epsilon of a report",
  spent: "Epsilon spent",
  reports: "Reports in this period",
  of: "{0} of {1}",
  ofBoth: "{0}; to an observer of whole crowds {1}",
  notAsked: "not asked",
  crowd: "{0}; to an observer of whole crowds {1}, except with probability {2}",
  crowdOfDays:
    "{0}; to an observer of all crowds of any {3} days together {1}, except with probability {2}",
  crowdForLife: "{0}; to an observer of all its crowds for ever {1}, except with probability {2}",
  crowds:
    "All crowds of a year together can reveal {0} of {1} nats about you to an observer of whole crowds; then " +
    "nothing more is asked in one.",
  shuffler: "The shuffler, which mixes reports and cannot read them, is run by {0}.",
  aggregator: "The aggregator, which counts them without knowing the sender, is run by {0}.",
  apart: "Only both together could find out who sent a randomized answer.",
  together: "One party runs both: it could find out who sent a report.",
  issuer:
    "Reports go with tokens of an account at {0}, which knows that the account requested them, and " +
    "cannot see which reports they were used for.",
  notice: "Until {0} the operator requests less than this app was built with.",
  payloads: "The last payloads, as they left or wait",
  switchLocal: "Count answers on this device",
  onLocal: "Answers are counted on this device alone. Nothing is sent.",
  counted: "Counted on this device, and never sent",
};
const STYLE = `
:host { display: block; }
:host([hidden]) { display: none; }
table { border-collapse: collapse; width: 100%; }
caption, th, td { text-align: start; padding: 0.25em 0.75em 0.25em 0; vertical-align: top; }
td { font-variant-numeric: tabular-nums; }
tbody tr { border-block-start: 1px solid color-mix(in srgb, currentcolor 25%, transparent); }
meter { display: block; inline-size: 8em; }
code { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid; outline-offset: 2px; }
`;
const MOST_PAYLOADS = 20;
const NAME_PATTERN = /^[a-z][a-z0-9]*-[a-z0-9-]*$/;

/**
 * Defines the element under a name, once. Without this call the page is not changed. In Node, which
 * has no elements, the call does nothing.
 *
 * @throws BadParameter the name is not a valid name of an element.
 */
export function defineLedger(name = "hubbub-ledger"): void {
  if (typeof name !== "string" || !NAME_PATTERN.test(name)) {
    throw new BadParameter("defineLedger(): give a name in small letters with a hyphen: my-ledger");
  }
  if (!("customElements" in globalThis) || customElements.get(name)) return;
  // The class is defined inside this function because Node, which may render the page on a server,
  // has no HTMLElement.
  customElements.define(
    name,
    class extends HTMLElement implements LedgerElement {
      #client: Client | null = null;
      #words = WORDS;
      #parts: Elements | null = null;
      #unwatch: () => void = () => undefined;
      readonly #redraw = () => {
        if (document.visibilityState === "visible") void this.refresh();
      };

      get client(): Client | null {
        return this.#client;
      }

      set client(client: Client | null | undefined) {
        if (client && !("ledger" in Object(client))) {
          throw new BadParameter(
            `<${name}>: client is not a Client; give what open() returned, or null`,
          );
        }
        this.#client = client ?? null;
        this.#watch();
        void this.refresh();
      }

      get words(): Partial<LedgerWords> {
        return this.#words;
      }

      set words(words: Partial<LedgerWords>) {
        const entries = Object.entries(Object(words) as object);
        this.#words = { ...WORDS, ...Object.fromEntries(entries.filter(isWord)) };
        void this.refresh();
      }

      connectedCallback(): void {
        this.#parts ??= partsOf(this.attachShadow({ mode: "open" }), {
          turned: (on) => {
            void this.#change((client) => (on ? client.enable() : client.disable()));
          },
          forgot: () => {
            void this.#change((client) => client.disable({ forget: true }), this.#words.forgotten);
          },
        });
        document.addEventListener("visibilitychange", this.#redraw);
        this.#watch();
        void this.refresh();
      }

      disconnectedCallback(): void {
        document.removeEventListener("visibilitychange", this.#redraw);
        this.#unwatch();
      }

      refresh(): Promise<void> {
        return this.#change(() => Promise.resolve());
      }

      /**
       * Reads the ledger again whenever this client changes it, as long as the element is in a
       * page.
       */
      #watch(): void {
        this.#unwatch();
        if (this.isConnected) this.#unwatch = this.#client?.watch(this.#redraw) ?? this.#unwatch;
      }

      /** Carries out the person's choice, then shows the new state. */
      async #change(work: (client: Client) => Promise<void>, confirmation?: string): Promise<void> {
        const [parts, client] = [this.#parts, this.#client];
        if (!parts || !client) return;
        try {
          await work(client);
          show(parts, await client.ledger(), this.#words, languageOf(this), confirmation);
        } catch (error) {
          if (!(error instanceof StateUnusable)) throw error;
          parts.toggle.checked = false;
          parts.status.textContent = this.#words.unusable;
        }
      }
    },
  );
}

function isWord([, words]: [string, unknown]): boolean {
  return typeof words === "string";
}

/** The parts of the element whose content changes. */
interface Elements {
  readonly region: HTMLElement;
  readonly toggle: HTMLInputElement;
  readonly toggleText: Text;
  readonly status: HTMLElement;
  readonly forget: HTMLButtonElement;
  readonly runs: HTMLElement;
  readonly table: HTMLElement;
  readonly summary: HTMLElement;
  readonly payloads: HTMLElement;
  readonly counted: HTMLElement;
}

function partsOf(root: ShadowRoot, on: { turned(on: boolean): void; forgot(): void }): Elements {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];
  const toggle = createElement("input", { type: "checkbox", role: "switch", part: "switch" });
  toggle.addEventListener("change", () => {
    on.turned(toggle.checked);
  });
  const forget = createElement("button", { type: "button", part: "forget" });
  forget.addEventListener("click", () => {
    on.forgot();
  });
  const toggleText = new Text();
  const parts: Elements = {
    ...{ toggle, toggleText, forget },
    region: createElement("section", { part: "ledger" }),
    status: createElement("p", { role: "status", part: "status" }),
    runs: createElement("div", { part: "runs" }),
    table: createElement("table", { part: "table" }),
    summary: createElement("summary"),
    payloads: createElement("ul", { part: "payloads" }),
    counted: createElement("table", { part: "counted" }),
  };
  const label = createElement("label", {}, toggle, " ", toggleText);
  const details = createElement("details", {}, parts.summary, parts.payloads);
  const { region, status, table, counted, runs } = parts;
  region.append(label, status, counted, table, runs, details, forget);
  root.append(parts.region);
  return parts;
}

function show(
  parts: Elements,
  ledger: LedgerView,
  words: LedgerWords,
  language: string | undefined,
  confirmation: string | undefined,
): void {
  const say = saying(language);
  parts.region.setAttribute("aria-label", words.title);
  parts.toggleText.data = ledger.local ? words.switchLocal : words.switch;
  parts.toggle.checked = ledger.on;
  parts.forget.textContent = words.forget;
  const { runs, notice, issuer, crowdsInYear, crowdsCap } = ledger;
  const lines = [
    crowdsInYear !== null &&
      crowdsCap !== null &&
      filled(words.crowds, say.atMost(crowdsInYear), say.atMost(crowdsCap)),
    issuer && filled(words.issuer, issuer),
    runs && filled(words.shuffler, runs.shuffler),
    runs && filled(words.aggregator, runs.aggregator),
    runs && (areApart(runs) ? words.apart : words.together),
    notice && filled(words.notice, say.date(notice.until)),
  ];
  parts.runs.replaceChildren(
    ...lines.flatMap((line) => (line ? [createElement("p", {}, line)] : [])),
  );
  const heads = [words.metric, words.epsilon, words.spent, words.reports];
  parts.table.replaceChildren(
    createElement("caption", {}, words.caption),
    createElement(
      "thead",
      {},
      createElement("tr", {}, ...heads.map((head) => createElement("th", { scope: "col" }, head))),
    ),
    createElement("tbody", {}, ...ledger.metrics.map((metric) => row(metric, words, say))),
  );
  const counts = Object.entries(ledger.ownCounts);
  parts.counted.hidden = !counts.length;
  parts.counted.replaceChildren(
    createElement("caption", {}, words.counted),
    ...counts.map(([metric, values]) => countedRows(metric, values, ledger, say)),
  );
  parts.summary.textContent = words.payloads;
  const newestPayloads = ledger.payloads.slice(-MOST_PAYLOADS).reverse();
  parts.payloads.replaceChildren(...newestPayloads.map((payload) => line(payload, say)));
  const status =
    confirmation ?? (ledger.on ? (ledger.local ? words.onLocal : words.on) : words.off);
  // The text is set only if it differs: screen readers speak every change aloud.
  if (parts.status.textContent !== status) parts.status.textContent = status;
}

function row(metric: MetricView, words: LedgerWords, say: Saying): HTMLElement {
  const { epsilon, spent, lifetimeEpsilon, central, lifetimeCentralEpsilon, sampling } = metric;
  const promiseText = promise(metric, words, say);
  const amountOfLimit = (amount: number, limit: number) =>
    filled(words.of, say.atMost(amount), say.atMost(limit));
  const localAmount = amountOfLimit(spent, lifetimeEpsilon);
  const amounts =
    lifetimeCentralEpsilon === null
      ? localAmount
      : filled(words.ofBoth, localAmount, amountOfLimit(central, lifetimeCentralEpsilon));
  const meter = createElement("meter", { "aria-label": words.spent });
  meter.max = lifetimeEpsilon;
  meter.value = spent;
  const reports = filled(words.of, say.number(metric.reports), say.number(metric.reportsPerEpoch));
  return createElement(
    "tr",
    {},
    createElement("th", { scope: "row" }, metric.description),
    createElement("td", {}, epsilon && sampling ? promiseText : words.notAsked),
    createElement("td", {}, meter, amounts),
    createElement("td", {}, reports),
  );
}

/**
 * Rows that show how often each value of a metric was counted on this device, the most frequent
 * first.
 */
function countedRows(
  name: string,
  values: Readonly<Record<string, number>>,
  { metrics }: LedgerView,
  say: Saying,
): HTMLElement {
  const { description } = metrics.find((metric) => metric.name === name) ?? { description: name };
  const head = createElement("th", { scope: "rowgroup", colspan: "2" }, description);
  const rows = Object.entries(values).sort(([, count], [, otherCount]) => otherCount - count);
  return createElement(
    "tbody",
    {},
    createElement("tr", {}, head),
    ...rows.map(([value, count]) =>
      createElement(
        "tr",
        {},
        createElement("th", { scope: "row" }, value),
        createElement("td", {}, say.number(count)),
      ),
    ),
  );
}

/**
 * How much a report reveals about a person: to anyone who sees it, and to an observer of whole
 * crowds.
 */
function promise(metric: MetricView, words: LedgerWords, say: Saying): string {
  const { epsilon, centralEpsilon, delta, centralDays } = metric;
  const localEpsilon = say.atMost(epsilon);
  if (centralEpsilon === null || delta === null) return localEpsilon;
  const figures = [localEpsilon, say.atMost(centralEpsilon), say.chance(delta)];
  if (centralDays === null) return filled(words.crowd, ...figures);
  if (centralDays === Infinity) return filled(words.crowdForLife, ...figures);
  return filled(words.crowdOfDays, ...figures, say.number(centralDays));
}

/** Whether different parties run the shuffler and the aggregator. */
function areApart({ shuffler, aggregator }: Runs): boolean {
  return shuffler.toLowerCase() !== aggregator.toLowerCase();
}

function line({ made: moment, metric, payload, fate }: PayloadView, say: Saying): HTMLElement {
  const bytes = Array.from(payload, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return createElement(
    "li",
    {},
    `${say.date(moment)} ${metric} `,
    createElement("code", {}, bytes),
    ` ${fate}`,
  );
}

function createElement<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    element.setAttribute(attribute, value);
  }
  element.append(...children);
  return element;
}

function filled(words: string, ...figures: string[]): string {
  return words.replace(/\{(\d)\}/g, (_place, index: string) => figures[Number(index)] ?? "");
}

/** Formats numbers and moments (seconds since 1970) in a language. */
interface Saying {
  number(number: number): string;
  atMost(bound: number): string;
  chance(number: number): string;
  date(seconds: number): string;
}

function saying(language: string | undefined): Saying {
  const decimalFormat = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 });
  const scientificFormat = new Intl.NumberFormat(language, { notation: "scientific" });
  const date = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  return {
    number: (number) => decimalFormat.format(number),
    atMost: (bound) => decimalFormat.format(roundedUp(bound)),
    chance: (delta) => scientificFormat.format(roundedUp(delta)),
    date: (seconds) => date.format(1000 * seconds),
  };
}

/** A bound of 0 or more, rounded up to three digits, except for errors of floats. */
function roundedUp(bound: number): number {
  if (!bound) return bound;
  const digit = 10 ** (Math.floor(Math.log10(bound)) - 2);
  return Math.ceil((bound / digit) * (1 - 1e-12)) * digit;
}

/**
 * The page's language: of the nearest element with a valid `lang`; undefined, for the browser's
 * language, if there is none.
 */
function languageOf(element: HTMLElement): string | undefined {
  const language = element.closest<HTMLElement>("[lang]")?.lang;
  try {
    return language ? Intl.getCanonicalLocales(language)[0] : undefined;
  } catch {
    return undefined;
  }
}
