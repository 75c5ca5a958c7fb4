// The page's state is in its address, so a copied link shows the same page, and the browser's Back
// button works.

/** A field of the state: its default, and a function that returns whether a text is allowed. */
const text = (fallback, allows = () => true) => ({ fallback, allows, many: false });
const texts = () => ({ fallback: [], allows: () => true, many: true });
const among = (...allowed) => text(allowed[0], (value) => allowed.includes(value));
const number = () => text("0", (value) => /^\d{1,7}$/.test(value));
export const kinds = { text, texts, among, number };

// Typed strings stand after the #, so no server and no proxy receives them.
const TYPED = "look";
const LONGEST = 4000;

/**
 * The state of a page whose address has these fields.
 *
 * changed: called whenever the reader goes back or forward to another state.
 */
export class Address {
  constructor(fields, changed) {
    this.fields = fields;
    this.typed = [];
    this.load();
    addEventListener("popstate", () => {
      const previousLink = this.link();
      this.load();
      if (this.link() !== previousLink) changed();
    });
  }

  /**
   * Reads the state from the address. `complaints` lists the parts of it that this page cannot
   * show.
   */
  load() {
    const parameters = new URLSearchParams(location.search);
    this.complaints = [];
    const state = {};
    for (const [name, field] of Object.entries(this.fields)) {
      const allowed = parameters.getAll(name).filter((value) => {
        if (field.allows(value)) return true;
        this.complaints.push(`“${name}=${value}” of the link cannot be shown`);
        return false;
      });
      state[name] = field.many ? allowed : (allowed.at(0) ?? field.fallback);
    }
    for (const name of new Set(parameters.keys())) {
      if (!(name in this.fields)) {
        this.complaints.push(`“${name}” of the link is unknown here; a newer hubbub may support it`);
      }
    }
    const hash = new URLSearchParams(location.hash.slice(1));
    if (hash.has(TYPED) || !location.hash) this.typed = hash.getAll(TYPED);
    this.state = state;
  }

  /**
   * Goes to another state. Fields that are not in `changes` stay. quietly: without an entry in the
   * browser's history.
   */
  go(changes, { typed = this.typed, quietly = false } = {}) {
    Object.assign(this.state, changes);
    this.typed = typed;
    const link = this.link();
    if (link === location.pathname + location.search + location.hash) return;
    history[quietly ? "replaceState" : "pushState"](null, "", link);
  }

  /** The address of the state with some changes. Unknown parameters are preserved. */
  link(changes = {}) {
    const parameters = new URLSearchParams(location.search);
    for (const [name, field] of Object.entries(this.fields)) {
      parameters.delete(name);
      const value = changes[name] ?? this.state[name];
      if (field.many) value.forEach((item) => parameters.append(name, item));
      else if (value !== field.fallback) parameters.set(name, value);
    }
    const typed = new URLSearchParams(this.typed.map((text) => [TYPED, text])).toString();
    const hash = typed && typed.length <= LONGEST ? `#${typed}` : "";
    return `${location.pathname}${parameters.size ? `?${parameters}` : ""}${hash}`;
  }

  /** Whether a link to this state shows all of it. */
  get whole() {
    return !this.typed.length || this.link().includes("#");
  }
}
