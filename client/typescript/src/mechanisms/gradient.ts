/**
 * A person's part of a model as a vector: where their columns lie, or how weights are wrong.
 *
 * As client/hubbub/mechanisms/gradient.py, to the last digit of every number (./alike.ts).
 */
import { expNeg, length, product, sum } from "./alike.js";

/** What a model is. */
export type ModelKind = "logistic" | "linear" | "ridge" | "softmax";

/** To which length a residual is clipped; of a number's label, in its range. */
const CLIP = { logistic: 0.5, linear: 0.25, ridge: 0.25, softmax: 1 };
const LONGEST = 2.7; // of columns in the first round
const MAX_SCORE = 40;

/** A person's columns and label in [0, 1], of softmax the place of the class; and the state. */
export interface LearnedExample {
  readonly kind: ModelKind;
  readonly columns: readonly number[];
  readonly label: number;
  readonly centre: readonly number[];
  readonly weights: readonly number[];
}

/** Columns as the first round has them: over their clip, with a last one of 0. */
export function place(columns: readonly number[]): number[] {
  const longest = Math.min(Math.sqrt(columns.length), LONGEST);
  return [...columns.map((column) => column / longest), 0];
}

/** A person's gradient over the clip: of length 1 at most, as many numbers as weights. */
export function gradient({ kind, columns, label, centre, weights }: LearnedExample): number[] {
  const about = aboutOf(columns, centre);
  const long = length(about);
  return residuals(kind, about, label, weights).flatMap((r) => about.map((x) => (r * x) / long));
}

/**
 * What a model's weights come to for a person, and the label; of softmax the chance of the likeliest
 * class, and 1 where that is the person's, or else 0.
 */
export function toJudge(state: LearnedExample): [score: number, label: number] {
  const { kind, columns, label, centre, weights } = state;
  const about = aboutOf(columns, centre);
  if (kind !== "softmax") return [scores(about, weights)[0] ?? 0, label];
  const confidences = chances(softmax(classScores(about, weights)));
  const maxConfidence = Math.max(...confidences);
  return [maxConfidence, Number(confidences.indexOf(maxConfidence) === label)];
}

/** Rows of unit length, at right angles to each other and to ones: one fewer than classes. */
function contrasts(classes: number): number[][] {
  return Array.from({ length: classes - 1 }, (_, row) => {
    const rank = row + 1;
    const unit = Math.sqrt(rank * (rank + 1));
    return Array.from({ length: classes }, (_own, place) => {
      return place < rank ? 1 / unit : place === rank ? -rank / unit : 0;
    });
  });
}

/** How far what is foretold is off, over the clip: of length 1 at most. */
function residuals(
  kind: ModelKind,
  about: readonly number[],
  label: number,
  weights: readonly number[],
): number[] {
  if (kind === "softmax") {
    const probabilities = softmax(classScores(about, weights));
    const off = probabilities.map((s, place) => s - Number(place === label));
    const longer = Math.max(length(off), CLIP[kind]);
    return contrasts(off.length).map((row) => product(row, off) / longer);
  }
  let [foretold = 0] = scores(about, weights);
  if (kind === "logistic") {
    const expTerm = expNeg(Math.min(Math.abs(foretold), MAX_SCORE));
    foretold = (foretold >= 0 ? 1 : expTerm) / (1 + expTerm);
  }
  return [Math.min(Math.max((foretold - label) / CLIP[kind], -1), 1)];
}

/** The chance of each class, of a model whose rounds have settled with clipped residuals. */
function chances(probabilities: readonly number[]): number[] {
  const square = product(probabilities, probabilities);
  const parts = probabilities.map((s) => {
    const r = Math.sqrt(Math.max(square - 2 * s + 1, 0));
    return s * Math.max(r / CLIP.softmax, 1);
  });
  const total = sum(parts);
  return parts.map((part) => part / total);
}

/** A score for each row of weights. */
function scores(about: readonly number[], weights: readonly number[]): number[] {
  const size = about.length;
  return Array.from({ length: weights.length / size }, (_, row) => {
    return product(about, weights.slice(row * size, (row + 1) * size));
  });
}

function classScores(about: readonly number[], weights: readonly number[]): number[] {
  const perClass = scores(about, weights);
  const rows = contrasts(perClass.length + 1);
  return Array.from({ length: perClass.length + 1 }, (_, classNumber) => {
    return product(
      perClass,
      rows.map((row) => row[classNumber] ?? 0),
    );
  });
}

function softmax(scores: readonly number[]): number[] {
  const largest = Math.max(...scores);
  const parts = scores.map((score) => expNeg(Math.min(largest - score, MAX_SCORE)));
  const total = sum(parts);
  return parts.map((part) => part / total);
}

function aboutOf(columns: readonly number[], centre: readonly number[]): number[] {
  return [...columns.map((x, index) => x - (centre[index] ?? 0)), 1];
}
