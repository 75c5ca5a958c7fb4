// Lists of strings to look for, of the catalog or saved by analysts: selects, saves and deletes
// them.
import { $, Refused, ask, button, count, h, printable, several } from "./shell.js";

/**
 * Lists that no analyst saved: the catalog's own, and the strings that the metric's devices found.
 */
const OWN = new Map([
  ["catalog", "the catalog’s own"],
  ["discovered", "what was discovered"],
]);

const at = (name) => `/v1/candidates/${encodeURIComponent(name)}`;

export class SavedLists {
  /**
   * form: the page's controls. askAgain: requests the answer again, with these lists selected too.
   */
  constructor(form, askAgain) {
    this.form = form;
    this.askAgain = askAgain;
    this.metric = null;
    this.typed = [];
    form.keeping.addEventListener("click", () => this.keep());
    form.keep.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.keep();
    });
  }

  async begin(metric) {
    this.metric = metric;
    const [{ lists }, me] = await Promise.all([ask("/v1/candidates"), ask("/v1/me")]);
    this.writes = me.role !== "viewer";
    const all = lists.map((list) => [list.name, list.total]);
    if (metric.discover) all.unshift(["discovered", null]);
    if (metric.candidates) all.unshift(["catalog", metric.candidates]);
    const ticked = this.ticked();
    $("lists").replaceChildren(
      h("legend", {}, "Strings to look for"),
      ...all.map(([name, total]) => this.line(name, total)),
    );
    this.tick(ticked);
    $("lists").hidden = !all.length;
    $("typed").querySelector("span").textContent = all.length
      ? "Others, one per line"
      : "Strings to look for, one per line";
  }

  line(name, total) {
    const label = OWN.get(name) ?? printable(name);
    const box = h("input", { type: "checkbox", value: name });
    const forget =
      OWN.has(name) || !this.writes
        ? null
        : button("Forget", () => this.forget(name, total), { "aria-label": `Forget ${label}` });
    return h("span", { class: "list" }, h("label", {}, box, ` ${label}${total === null ? "" : ` (${count(total)})`}`), forget);
  }

  ticked() {
    return [...$("lists").querySelectorAll("input:checked")].map((box) => box.value);
  }

  tick(lists) {
    for (const box of $("lists").querySelectorAll("input")) box.checked = lists.includes(box.value);
  }

  show(lists, typed) {
    this.tick(lists);
    this.typed = typed;
    $("keep").hidden = !typed.length || !this.writes;
  }

  /** Saves the typed strings as a list, and selects that list instead of them. */
  async keep() {
    const name = this.form.keep.value.trim();
    if (!name) return this.say("Give it a name first.");
    if (name.includes("/")) return this.say("A list’s name has no /.");
    const stored = await this.attempt(() => ask("/v1/candidates"));
    if (!stored) return null;
    const existing = stored.lists.find((list) => list.name === name);
    const whole = existing && `There is a list “${printable(name)}” of ${several(existing.total, "string")}. Put this one in its place?`;
    if (whole && !confirm(whole)) return null;
    const body = { candidates: this.typed };
    const reply = await this.attempt(() => ask(at(name), {}, body, "PUT"));
    if (!reply) return null;
    this.form.keep.value = "";
    await this.begin(this.metric);
    this.say(`Saved: ${printable(name)}, ${several(reply.total, "string")}.`);
    return this.askAgain([name]);
  }

  async forget(name, total) {
    const whole = `Forget the list “${printable(name)}” of ${several(total, "string")}, for everybody?`;
    if (!confirm(whole)) return;
    if ((await this.attempt(() => ask(at(name), {}, null, "DELETE"))) === undefined) return;
    await this.begin(this.metric);
    this.askAgain([]);
  }

  /** The service's answer; undefined if the service refuses, after the reason was shown. */
  async attempt(asking) {
    try {
      return await asking();
    } catch (error) {
      this.say(error instanceof Refused ? error.message : "The service does not answer.");
      return undefined;
    }
  }

  say(text) {
    $("kept").textContent = text;
    $("keep").hidden = false;
  }
}
