/**
 * How long a device waits before it sends, and before it tries again: client/delivery/waits.py.
 *
 * After an outage a million devices must not return at the same moment; so all waits are random,
 * and long where possible.
 */
import type { Bundle } from "../catalog/bundle.js";
import { graceSeconds } from "../catalog/epochs.js";

const FIRST_SECONDS = 0.2;
const LONGEST_SECONDS = 300;
const SHORTEST_HINT_SECONDS = 1; // once it has failed for a while: every attempt is work
const LONGEST_HINT_SECONDS = 3600;
const TRIES_AT_ONCE = 5;
const APART_SECONDS = 7200;
const LEFT_OVER_SECONDS = 30;
const AFTER = 4; // of a day's grace six hours
const MOST_DOUBLINGS = 20;

/** The waits of a client that runs as long as its app. */
export class Waits {
  readonly #hold: number;
  readonly #apart: number;
  readonly #after: number;

  /** holdSeconds: the longest wait before sending; less where a report would be too late. */
  constructor(bundle: Bundle, holdSeconds: number) {
    const graces = [...bundle.metrics.values()].map((metric) => graceSeconds(metric.epoch));
    const grace = Math.min(...graces, Number.MAX_SAFE_INTEGER);
    // In development nobody is hidden, and its own number is what a developer waits for.
    this.#hold = bundle.development ? 0 : Math.min(holdSeconds, (grace * 2) / 3);
    this.#after = bundle.development ? 0 : grace / AFTER;
    this.#apart = Math.min(APART_SECONDS, grace / 2);
  }

  /** Before what has been entered is sent. leftOver: by a page before, where it waited. */
  beforeSending(leftOver: boolean): number {
    return uniform(leftOver ? Math.min(this.#hold, LEFT_OVER_SECONDS) : this.#hold);
  }

  /** Before what waited for the end of its epoch is sent: all devices know that moment. */
  afterEpoch(): number {
    return uniform(this.#after);
  }

  /** After so many failures in a row; hint: as of `soon`. */
  beforeTryingAgain(failures: number, hint?: number): number {
    const wait = soon(failures, hint);
    return failures <= TRIES_AT_ONCE ? wait : Math.max(wait, uniform(this.#apart));
  }
}

/**
 * Exponential backoff with full jitter, for whoever has the caller waiting. failures: in a row. hint:
 * when the server wants to be tried again, in seconds, where it says so.
 */
export function soon(failures: number, hint?: number): number {
  const longest = Math.min(
    LONGEST_SECONDS,
    FIRST_SECONDS * 2 ** Math.min(failures, MOST_DOUBLINGS),
  );
  if (!hint) return uniform(longest);
  return Math.min(Math.max(hint, Math.min(SHORTEST_HINT_SECONDS, longest)), LONGEST_HINT_SECONDS);
}

/** A uniform random number from 0 to `longest`. */
export function uniform(longest: number): number {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return (longest * random) / 2 ** 32;
}
