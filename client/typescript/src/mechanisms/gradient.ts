/**
 * A person's contribution to a model, as a vector: the position of their columns, or the gradient
 * of their error.
 *
 * As client/hubbub/mechanisms/gradient.py, to the last digit of every number (./portable_floats.ts).
 */
import { expNeg, length, product, sum } from "./portable_floats.js";

/** The kinds of models. */
export type ModelKind = "logistic" | "linear" | "ridge" | "softmax";

/**
 * The length to which a residual is clipped; for models of a number, in units of the label's range.
 */
const CLIP = { logistic: 0.5, linear: 0.25, ridge: 0.25, softmax: 1 };
const LONGEST = 2.7; // the maximum length of the columns in the first round
const MAX_SCORE = 40;

/**
 * A person's columns and label in [0, 1] (for softmax the index of the class), and the state of the
 * model.
 */
export interface LearnedExample {
  readonly kind: ModelKind;
  readonly columns: readonly number[];
  readonly label: number;
  readonly centre: readonly number[];
  readonly weights: readonly number[];
}

/** The vector of the first round: the columns divided by their clip length, followed by a 0. */
export function place(columns: readonly number[]): number[] {
  const longest = Math.min(Math.sqrt(columns.length), LONGEST);
  return [...columns.map((column) => column / longest), 0];
}

/**
 * A person's gradient divided by the clip length: its length is at most 1, its size that of the
 * weights.
 */
export function gradient({ kind, columns, label, centre, weights }: LearnedExample): number[] {
  const about = aboutOf(columns, centre);
  const norm = length(about);
  return residuals(kind, about, label, weights).flatMap((r) => about.map((x) => (r * x) / norm));
}

/**
 * The model's score for a person, and the label. For softmax, the probability of the likeliest
 * class, and 1 if that is the person's class, else 0.
 */
export function toJudge(state: LearnedExample): [score: number, label: number] {
  const { kind, columns, label, centre, weights } = state;
  const about = aboutOf(columns, centre);
  if (kind !== "softmax") return [scores(about, weights)[0] ?? 0, label];
  const confidences = chances(softmax(classScores(about, weights)));
  const maxConfidence = Math.max(...confidences);
  return [maxConfidence, Number(confidences.indexOf(maxConfidence) === label)];
}

/**
 * Orthogonal rows of unit length, each orthogonal to the vector of ones; one row fewer than
 * classes.
 */
function contrasts(classes: number): number[][] {
  return Array.from({ length: classes - 1 }, (_, row) => {
    const rank = row + 1;
    const unit = Math.sqrt(rank * (rank + 1));
    return Array.from({ length: classes }, (_own, place) => {
      return place < rank ? 1 / unit : place === rank ? -rank / unit : 0;
    });
  });
}

/** The error of the prediction divided by the clip length; its length is at most 1. */
function residuals(
  kind: ModelKind,
  about: readonly number[],
  label: number,
  weights: readonly number[],
): number[] {
  if (kind === "softmax") {
    const probabilities = softmax(classScores(about, weights));
    const errors = probabilities.map((s, place) => s - Number(place === label));
    const longer = Math.max(length(errors), CLIP[kind]);
    return contrasts(errors.length).map((row) => product(row, errors) / longer);
  }
  let [foretold = 0] = scores(about, weights);
  if (kind === "logistic") {
    const expTerm = expNeg(Math.min(Math.abs(foretold), MAX_SCORE));
    foretold = (foretold >= 0 ? 1 : expTerm) / (1 + expTerm);
  }
  return [Math.min(Math.max((foretold - label) / CLIP[kind], -1), 1)];
}

/** The probability of each class, for a model whose rounds converged with clipped residuals. */
function chances(probabilities: readonly number[]): number[] {
  const square = product(probabilities, probabilities);
  const parts = probabilities.map((s) => {
    const r = Math.sqrt(Math.max(square - 2 * s + 1, 0));
    return s * Math.max(r / CLIP.softmax, 1);
  });
  const partSum = sum(parts);
  return parts.map((part) => part / partSum);
}

/** One score for each row of weights. */
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
  const maxScore = Math.max(...scores);
  const parts = scores.map((score) => expNeg(Math.min(maxScore - score, MAX_SCORE)));
  const partSum = sum(parts);
  return parts.map((part) => part / partSum);
}

function aboutOf(columns: readonly number[], centre: readonly number[]): number[] {
  return [...columns.map((x, index) => x - (centre[index] ?? 0)), 1];
}
