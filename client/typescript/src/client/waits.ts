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
// after TRIES_AT_ONCE failures, because every attempt costs the server work
const SHORTEST_HINT_SECONDS = 1;
const LONGEST_HINT_SECONDS = 3600;
const TRIES_AT_ONCE = 5;
const APART_SECONDS = 7200;
const LEFT_OVER_SECONDS = 30;
const AFTER = 4; // six hours of a day's grace
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
    // A development bundle has one device, so delays hide nobody, and a developer wants to see the
    // report at once.
    this.#hold = bundle.development ? 0 : Math.min(holdSeconds, (grace * 2) / 3);
    this.#after = bundle.development ? 0 : grace / AFTER;
    this.#apart = Math.min(APART_SECONDS, grace / 2);
  }

  /**
   * Seconds before new reports are sent. leftOver: whether an earlier page already made them wait.
   */
  beforeSending(leftOver: boolean): number {
    return uniform(leftOver ? Math.min(this.#hold, LEFT_OVER_SECONDS) : this.#hold);
  }

  /**
   * Seconds before reports are sent that waited for the end of an epoch, a moment that is the same
   * for all devices.
   */
  afterEpoch(): number {
    return uniform(this.#after);
  }

  /** Seconds before the next try. failures: the number of failures in a row. hint: as in `soon`. */
  beforeTryingAgain(failures: number, hint?: number): number {
    const wait = soon(failures, hint);
    return failures <= TRIES_AT_ONCE ? wait : Math.max(wait, uniform(this.#apart));
  }
}

/**
 * Seconds before the next try while a caller waits: exponential backoff with full jitter. failures:
 * the number of failures in a row. hint: the pause in seconds that the server asked for, if it did.
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
