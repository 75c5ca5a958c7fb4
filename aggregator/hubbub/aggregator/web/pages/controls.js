// The controls of a metric's page. They show the state in the address, and a change of a control
// changes the address.
import { $, ask, h, ofMeans, printable } from "./shell.js";
import { offerBeside } from "./beside.js";
import { SavedLists } from "./lists.js";

const RANGES = [
  ["newest", "newest epoch"],
  ["closed", "newest that is final"],
  ["last:7d", "last 7 days"],
  ["last:30d", "last 30 days"],
  ["last:52w", "last year"],
  ["all", "all"],
  ["custom", "other …"],
];

export class Controls {
  /** change: goes to another state. */
  constructor(address, metric, change) {
    this.address = address;
    this.metric = metric;
    this.form = $("controls").elements;
    const { form } = this;
    form.range.replaceChildren(...RANGES.map(([value, text]) => h("option", { value }, text)));
    $("shown").hidden = ofMeans(metric);
    form.range.addEventListener("change", () => {
      $("custom").hidden = form.range.value !== "custom";
      if ($("custom").hidden) change({ epochs: form.range.value, first: "0" });
      else form.epochs.focus();
    });
    form.epochs.addEventListener("change", () => {
      if (form.epochs.value.trim()) change({ epochs: form.epochs.value.trim(), first: "0" });
    });
    for (const name of ["confidence", "looks", "show", "beside"]) {
      form[name].addEventListener("change", () => change({ [name]: form[name].value }));
    }
    const lists = new SavedLists(form, (names) => {
      const list = [...new Set([...this.lists.ticked(), ...names])];
      change({ list, first: "0" }, undefined, names.length ? [] : address.typed);
    });
    this.lists = lists;
    const ticked = () => lists.ticked();
    const typed = () => {
      const lines = form.typed.value.split("\n").map((line) => line.trim());
      // The typed strings are added to the selected lists.
      const strings = [...new Set(lines.filter(Boolean))];
      change({ list: strings.length ? ticked() : [], first: "0" }, undefined, strings);
    };
    form.typed.addEventListener("change", typed);
    form.file.addEventListener("change", async () => {
      form.typed.value = await form.file.files[0].text();
      typed();
    });
    $("controls").addEventListener("submit", (event) => event.preventDefault());
    $("lists").addEventListener("change", () => change({ list: ticked(), first: "0" }));
  }

  /**
   * Loads the options from the service: metrics to show beside this one, and lists of strings to
   * look for.
   */
  async begin() {
    await offerBeside(this.metric, this.form.beside);
    const canLook = this.metric.candidates !== null;
    $("lists").hidden = $("typed").hidden = !canLook;
    if (canLook) await this.lists.begin(this.metric);
    this.show();
  }

  /** Sets the controls to the state in the address. */
  show() {
    const { epochs, confidence, looks, show, beside, list } = this.address.state;
    const listed = RANGES.some(([value]) => value === epochs);
    this.form.range.value = listed ? epochs : "custom";
    $("custom").hidden = listed;
    this.form.epochs.value = listed ? "" : epochs;
    this.form.confidence.value = confidence;
    this.form.looks.value = looks;
    // If the address requests intervals that this metric does not have, the reader must be able to
    // change that.
    const reason = this.metric.one_look;
    this.form.looks.options[1].disabled = Boolean(reason) && looks === "once";
    $("looking-why").textContent = reason
      ? `At one look only: ${printable(reason, 200)}.`
      : "";
    this.form.show.value = show;
    this.form.beside.value = beside;
    if (this.form.beside.selectedIndex < 0) this.form.beside.value = "";
    this.form.typed.value = this.address.typed.join("\n");
    this.lists.show(list, this.address.typed);
  }

  /** Selects the lists that the answer was computed for. */
  answered(answer) {
    this.lists.tick(answer.lists);
  }
}
