// Strings that devices probably have, without proof: candidates to count next, for metrics that
// discover strings.
import { ask, button, count, h, percent, printable } from "./shell.js";
import { showState } from "./states.js";

// The maximum share of the returned strings that no device has.
const FALSE_SHARE = 0.5;

/** A button that requests the strings; the result then replaces it. */
export function likelyStrings(path, query) {
  const place = h("div", { role: "status" });
  const showNote = (text) => place.replaceChildren(h("p", { class: "note" }, text));
  const look = async () => {
    showNote("Looking for likely strings …");
    try {
      const { likely } = await ask(`${path}/estimates`, { ...query, likely: FALSE_SHARE });
      showNote(sentence(likely));
    } catch (error) {
      showState(place, error);
    }
  };
  place.append(button("Look for likely strings, too", look));
  return place;
}

function sentence(likely) {
  if (!likely.length) return "No further string is likely.";
  const doubt = percent(likely.at(-1).doubt, 0);
  const names = likely.map((string) => `“${printable(string.value)}” (at most ${count(string.high)})`);
  return `Likely, too, the surest first: ${names.join(", ")}. They are not proven, and ${doubt} of them may be held by nobody: count them next.`;
}
