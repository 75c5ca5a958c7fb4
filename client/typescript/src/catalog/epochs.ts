/**
 * Epochs: time cut into equal spans of UTC or calendar months, numbered from 1970.
 *
 * Moments are in seconds since 1970-01-01 UTC.
 */
import { BadParameter } from "../errors.js";

/** The length of a day in seconds. */
export const DAY_SECONDS = 86_400;

const SPANS: ReadonlyMap<string, number> = new Map([
  ["minute", 60],
  ["hour", 3600],
  ["day", DAY_SECONDS],
  ["week", 604_800],
  ["28d", 2_419_200],
]);
const MONTH = "month";
const MONTH_SECONDS = 2_629_746; // a mean calendar month

/**
 * The epoch that holds a moment.
 *
 * @throws BadParameter no epoch has this length.
 */
export function epochAt(seconds: number, length: string): number {
  if (length !== MONTH) return Math.floor(seconds / span(length));
  const date = new Date(seconds * 1000);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/**
 * An epoch's first second.
 *
 * @throws BadParameter no epoch has this length.
 */
export function epochStart(epoch: number, length: string): number {
  return length === MONTH ? Date.UTC(1970, epoch) / 1000 : epoch * span(length);
}

function span(length: string): number {
  const seconds = SPANS.get(length);
  if (seconds === undefined) throw new BadParameter("no epoch has this length; upgrade hubbub");
  return seconds;
}

/** The day, counted from 1970, in which an epoch ends. */
export function lastDay(epoch: number, length: string): number {
  return Math.floor((epochStart(epoch + 1, length) - 1) / DAY_SECONDS);
}

/**
 * How long after an epoch's end the shuffler still accepts its reports: one epoch, or a mean month.
 */
export function graceSeconds(length: string): number {
  return length === MONTH ? MONTH_SECONDS : span(length);
}
