// The privacy card: what one person's report reveals, in words and in figures.
import { atMost, h, printable } from "./shell.js";

export function privacyCard(place, detail) {
  const facts = [
    ["One report", `ε ${atMost(detail.per_report, 4)}`],
    [
      `All of one person in ${detail.metric.epoch_length === "hour" ? "an hour" : `a ${detail.metric.epoch_length}`}`,
      `ε ${atMost(detail.per_epoch, 4)}`,
    ],
    ["All ever, at most", `ε ${atMost(detail.lifetime_epsilon, 4)}`],
    ["Starting from 50:50, an observer is at most this sure", `${atMost(100 * detail.max_posterior, 4)}%`],
    [
      `After the shuffler, among ${detail.shuffled.reports.toLocaleString("en")}`,
      `ε ${atMost(detail.shuffled.epsilon, 3)}, δ ${detail.shuffled.delta}`,
    ],
  ];
  if (detail.unchanged !== null)
    facts.splice(2, 0, [
      "All reports of one unchanged answer, for ever",
      `ε ${atMost(detail.unchanged, 4)}`,
    ]);
  place.replaceChildren(
    h("p", {}, printable(detail.sentence, 2000)),
    h(
      "dl",
      {},
      facts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text))),
    ),
    h(
      "p",
      { class: "muted" },
      `After the shuffler: ${printable(detail.shuffled.assumption, 400)}. The other figures assume nothing: devices randomize before they send.`,
    ),
  );
}
