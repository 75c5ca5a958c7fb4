// The page's state is in its address, so that a copied link shows the same and going back goes back.

/** A field of the state: what it is where the address does not say, and which texts it may be. */
const text = (fallback, allows = () => true) => ({ fallback, allows, many: false });
const texts = () => ({ fallback: [], allows: () => true, many: true });
const among = (...allowed) => text(allowed[0], (given) => allowed.includes(given));
const number = () => text("0", (given) => /^\d{1,7}$/.test(given));
export const kinds = { text, texts, among, number };

// Strings that somebody typed are after the #, which no server and no proxy ever sees.
const TYPED = "look";
const LONGEST = 4000;

/** The state of a page whose address has these fields.
 *  changed: called whenever somebody went back or forward to another state. */
export class Address {
  constructor(fields, changed) {
    this.fields = fields;
    this.typed = [];
    this.read();
    addEventListener("popstate", () => {
      const before = this.written();
      this.read();
      if (this.written() !== before) changed();
    });
  }

  /** Take the state from the address. `complaints`: what of it this page cannot show. */
  read() {
    const given = new URLSearchParams(location.search);
    this.complaints = [];
    const state = {};
    for (const [name, field] of Object.entries(this.fields)) {
      const allowed = given.getAll(name).filter((one) => {
        if (field.allows(one)) return true;
        this.complaints.push(`“${name}=${one}” of the link is none that can be shown`);
        return false;
      });
      state[name] = field.many ? allowed : (allowed.at(0) ?? field.fallback);
    }
    for (const name of new Set(given.keys())) {
      if (!(name in this.fields)) {
        this.complaints.push(`“${name}” of the link is not known here; a newer hubbub may know it`);
      }
    }
    const hash = new URLSearchParams(location.hash.slice(1));
    if (hash.has(TYPED) || !location.hash) this.typed = hash.getAll(TYPED);
    this.state = state;
  }

  /** Go to another state: what is not said stays as it is. quietly: without a step to go back. */
  go(changes, { typed = this.typed, quietly = false } = {}) {
    Object.assign(this.state, changes);
    this.typed = typed;
    const to = this.written();
    if (to === location.pathname + location.search + location.hash) return;
    history[quietly ? "replaceState" : "pushState"](null, "", to);
  }

  /** The address of the state, or of the state with some changes. What is not known is kept. */
  written(changes = {}) {
    const given = new URLSearchParams(location.search);
    for (const [name, field] of Object.entries(this.fields)) {
      given.delete(name);
      const value = changes[name] ?? this.state[name];
      if (field.many) value.forEach((one) => given.append(name, one));
      else if (value !== field.fallback) given.set(name, value);
    }
    const typed = new URLSearchParams(this.typed.map((one) => [TYPED, one])).toString();
    const hash = typed && typed.length <= LONGEST ? `#${typed}` : "";
    return `${location.pathname}${given.size ? `?${given}` : ""}${hash}`;
  }

  /** Whether a link to this state shows all of it. */
  get whole() {
    return !this.typed.length || this.written().includes("#");
  }
}
