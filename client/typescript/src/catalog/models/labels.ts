/** Labels: what a model predicts. As client/hubbub/catalog/models/learning.py. */
import { ValueOutOfDomain } from "../../errors.js";
import type { ModelKind } from "../../mechanisms/gradient.js";

/**
 * The possible labels. negative: "" if every other text is negative. range: for a numeric label.
 */
export interface Labels {
  readonly kind: ModelKind;
  readonly classes: readonly string[];
  readonly positive: string;
  readonly negative: string;
  readonly range: readonly [low: number, high: number];
}

/**
 * A label in [0, 1], or the index of its class, and whether it was clipped.
 *
 * @throws ValueOutOfDomain it is not a label; the message never shows it.
 */
export function labelOf(
  labels: Labels,
  label: unknown,
): readonly [label: number, clipped: boolean] {
  const { kind, classes, range } = labels;
  if (kind === "softmax") {
    const place = classes.indexOf(label as string);
    if (place >= 0) return [place, false];
    const names = classes.map((label) => `"${label}"`).join(", ");
    throw new ValueOutOfDomain(`the label is not one of the classes as written: ${names}`);
  }
  if (kind === "logistic") return [eitherOf(labels, label), false];
  if (typeof label !== "number" || !Number.isFinite(label)) {
    throw new ValueOutOfDomain("label is not a finite number");
  }
  const [low, high] = range;
  const clipped = Math.min(Math.max(label, low), high);
  return [(clipped - low) / (high - low), clipped !== label];
}

/** 1 for the positive label, 0 for the negative one. */
function eitherOf({ positive, negative }: Labels, label: unknown): number {
  if (typeof label === "string" && positive) {
    if (label === positive) return 1;
    // A text that differs from the positive label only in case or blanks is a mistake, not the
    // negative label.
    const isWrong = negative ? label !== negative : folded(label) === folded(positive);
    if (!isWrong) return 0;
    const otherText = negative ? `"${negative}"` : "every other text";
    throw new ValueOutOfDomain(
      "label is neither positive nor negative as written: " +
        `"${positive}" is 1, and ${otherText} is 0`,
    );
  }
  if (typeof label === "boolean" || label === 0 || label === 1) return Number(label);
  const text = negative
    ? `, nor "${positive}" or "${negative}"`
    : positive && `, nor "${positive}" or another text`;
  throw new ValueOutOfDomain(`label is neither 0 nor 1${text}`);
}

function folded(label: string): string {
  return label.trim().toUpperCase().toLowerCase();
}
