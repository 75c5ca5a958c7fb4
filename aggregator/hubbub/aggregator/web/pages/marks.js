// Marks: days of special events, which analysts set and the trends show.
import { $, ask, button, h, printable } from "./shell.js";
import { showState } from "./states.js";

const DAY = 86_400_000;

export class Marks {
  /** changed: draws the trend again. */
  constructor(place, metric, changed) {
    this.place = place;
    this.metric = metric;
    this.changed = changed;
    this.all = [];
  }

  async begin() {
    const [{ marks }, me] = await Promise.all([ask("/v1/marks", { metric: this.metric }), ask("/v1/me")]);
    this.all = marks;
    this.writes = me.role !== "viewer";
  }

  /** The marks within the time of these epochs. */
  within(epochs) {
    if (!epochs.length) return [];
    const first = Date.parse(epochs[0].begins);
    const last = Date.parse(epochs.at(-1).begins);
    return this.all
      .map((mark) => ({ ...mark, time: new Date(`${mark.date}T00:00:00Z`) }))
      .filter((mark) => first - DAY < +mark.time && +mark.time < last + DAY);
  }

  /** Shows the list of marks, and the form for a new one. */
  show() {
    const list = this.all.map((mark) =>
      h(
        "li",
        {},
        h("time", { datetime: mark.date }, mark.date),
        " ",
        h("b", {}, printable(mark.name)),
        mark.text ? ` ${printable(mark.text, 400)}` : "",
        mark.metric ? "" : " (all metrics)",
        " ",
        this.writes && button("Remove", () => this.remove(mark), { "aria-label": `Remove ${mark.name}` }),
      ),
    );
    this.place.replaceChildren(
      h(
        "details",
        {},
        h("summary", {}, `Marks (${this.all.length})`),
        list.length ? h("ul", { class: "marks" }, list) : null,
        this.writes ? this.form() : h("p", {}, "Setting and removing marks needs the role publisher."),
      ),
    );
  }

  form() {
    const form = h(
      "form",
      { class: "controls", id: "marking" },
      h("label", {}, "Day", h("input", { type: "date", name: "date", required: "" })),
      h("label", {}, "Name", h("input", { name: "called", required: "", maxlength: "60", placeholder: "release_2" })),
      h("label", {}, "What happened", h("input", { name: "text", maxlength: "400" })),
      h("label", {}, "On", h("select", { name: "where" }, h("option", { value: this.metric }, "this metric"), h("option", { value: "" }, "all metrics"))),
      h("button", {}, "Mark"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { date, called, text, where } = form.elements;
      this.save(called.value.trim(), { date: date.value, text: text.value, metric: where.value });
    });
    return form;
  }

  save(name, mark) {
    return this.then(() => ask(`/v1/marks/${encodeURIComponent(name)}`, {}, mark, "PUT"));
  }

  remove({ name, metric }) {
    return this.then(() => ask(`/v1/marks/${encodeURIComponent(name)}`, { metric }, null, "DELETE"));
  }

  async then(does) {
    try {
      await does();
      await this.begin();
      await this.changed();
      $("marks").querySelector("details").open = true;
    } catch (error) {
      const place = h("div", {});
      showState(place, error, {});
      $("marks").querySelector("details").append(place);
    }
  }
}
