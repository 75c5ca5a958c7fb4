/**
 * The ledger: the losses of this device so far, checked before any coin is drawn.
 *
 * All reports of one unchanged value under a permanent response together cost no more than that
 * response; another value costs again. As client/hubbub/client/ledger.py.
 */
import { YEAR_DAYS, type Caps } from "../catalog/caps.js";
import { lastDay } from "../catalog/epochs.js";
import { number, table, type Table } from "../catalog/json.js";
import type { Metric, Stream } from "../catalog/metric.js";
import {
  accountOf,
  withFloor,
  filtered,
  raised,
  type Account,
  type Accounts,
  type Numbers,
} from "./account.js";
import type { Outcome } from "./outcome.js";

/** A report to be charged. tag: a name of its permanent response that the device made, or "". */
export interface Charge {
  readonly metric: Metric;
  readonly stream: Stream;
  readonly epoch: number;
  readonly tag: string;
  /** Whether it is a filler, which is sent in place of a report and contains nothing. */
  readonly filler?: boolean;
}

// Every reported epoch is remembered separately, so that a device whose clock jumped ahead and back
// may still report today. Beyond this number, all the oldest epochs count as reported.
const EPOCHS = 64;
// Longer than the longest span of a cap. Past this many days the oldest are put together.
const DAYS = 400;
const ROUNDING = 1e-9; // of sums of costs, in nats
const FIELDS = ["epochs", "losses", "responses", "days", "crowds", "filled"] as const;

/** The accounts in a document. @throws TypeError the document is invalid. */
export function loadAccounts(value: unknown): Accounts {
  return Object.fromEntries(
    Object.entries(table(value)).map(([name, entry]) => [name, load(entry)]),
  );
}

/** The accounts with one report charged, or the outcome that forbids it. */
export function charged(accounts: Accounts, charge: Charge, caps: Caps): Accounts | Outcome {
  const { metric, stream, epoch, tag } = charge;
  const account = accountOf(accounts, metric);
  const { limits } = metric;
  if (charge.filler) {
    const isReported = epoch <= account.floor || account.filled[epoch] || account.epochs[epoch];
    return isReported ? "already_reported" : entered(accounts, charge, caps);
  }
  if (account.filled[epoch] || reportedOf(account, metric, epoch) >= limits.reportsPerEpoch) {
    return "already_reported";
  }
  const cost = costOf(account, stream, tag);
  if (account.spent + cost > limits.lifetimeEpsilon) return "over_budget";
  const central = account.central + centralCost(account, metric, epoch, cost);
  if (central > (limits.lifetimeCentralEpsilon ?? Infinity) + ROUNDING) return "over_budget";
  if (!isWithinCaps(accounts, charge, cost, caps)) return "over_budget";
  return entered(accounts, charge, caps);
}

/**
 * The number of reports that count towards the limit: of the epoch, or of the period that contains
 * it; Infinity if it is no longer known.
 */
export function reportedOf(account: Account, { period }: Metric, epoch: number): number {
  const [firstDay, endDay] = period?.days(epoch) ?? [epoch, epoch + 1];
  if (account.floor >= firstDay) return Infinity;
  return sumOf(
    Object.values(
      filtered(account.epochs, (epochNumber) => epochNumber >= firstDay && epochNumber < endDay),
    ),
  );
}

/** The accounts with one report charged, without a check of limits. */
export function entered(accounts: Accounts, charge: Charge, caps: Caps): Accounts {
  const { metric, stream, epoch, tag } = charge;
  const account = accountOf(accounts, metric);
  if (charge.filler) {
    const entry = {
      epochs: raised(account.epochs, epoch, 0),
      filled: { ...account.filled, [epoch]: 1 },
    };
    return { ...accounts, [metric.name]: withBoundedEpochs({ ...account, ...entry }) };
  }
  const cost = costOf(account, stream, tag);
  const day = lastDay(epoch, metric.epoch);
  const response = `${stream.tier}:${tag}`;
  const crowd = caps.crowds?.costs.get(metric.name);
  const updated: Account = {
    ...account,
    spent: account.spent + cost,
    central: account.central + centralCost(account, metric, epoch, cost),
    epochs: raised(account.epochs, epoch, 1),
    losses: raised(account.losses, epoch, cost),
    responses: tag ? raised(account.responses, response, 1) : account.responses,
    days: recent(raised(account.days, day, cost)),
    crowds: crowd ? recent(raised(account.crowds, day, crowd)) : account.crowds,
  };
  return { ...accounts, [metric.name]: withBoundedEpochs(updated) };
}

/** The loss of crowds after a day, future days included, as the sum of mu squared. */
export function crowdsSince(accounts: Accounts, day: number): number {
  return sumOf(Object.values(accounts).map((account) => sumAfter(account.crowds, day)));
}

function load(value: unknown): Account {
  const entry = table(value);
  const account: Table = { ...entry, filled: entry["filled"] ?? {} }; // earlier versions did not write the field
  const numbers = (field: string) => {
    const amounts: Table = table(account[field]);
    return Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, nats(amount)]));
  };
  return {
    ...(entry as object),
    spent: nats(account["spent"]),
    central: nats(account["central"]),
    floor: number(account["floor"]),
    ...(Object.fromEntries(FIELDS.map((field) => [field, numbers(field)])) as Pick<
      Account,
      (typeof FIELDS)[number]
    >),
  };
}

function nats(value: unknown): number {
  const amount = number(value);
  if (amount < 0) throw new TypeError("a sum is below 0");
  return amount;
}

function costOf(account: Account, { tier, randomizer }: Stream, tag: string): number {
  if (!tag) return randomizer.privacyLoss;
  const responseLoss = account.responses[`${tier}:${tag}`] ?? 0;
  const epsilonAfter = (reports: number) =>
    Math.min(reports * randomizer.privacyLoss, randomizer.permanentLoss);
  return epsilonAfter(responseLoss + 1) - epsilonAfter(responseLoss);
}

/**
 * The loss of a report to an observer of whole epochs, given its loss `cost` to anyone.
 *
 * A promise for a span of days is charged up to the promise in each span counted from 1970: earlier
 * losses of the span are remembered, and a report whose span is unknown counts as the first. A
 * model's promise is charged once for life.
 */
function centralCost(account: Account, metric: Metric, charged: number, cost: number): number {
  const { central, epoch: length } = metric;
  if (!central) return cost;
  const { epsilon: limit, days } = central;
  const span = (epoch: number) => Math.floor(lastDay(epoch, length) / (days ?? 1));
  const spanLosses = days ? filtered(account.losses, (epoch) => span(epoch) === span(charged)) : {};
  const spentBefore = days === Infinity ? account.spent : sumOf(Object.values(spanLosses));
  return Math.min(limit, spentBefore + cost) - Math.min(limit, spentBefore);
}

/**
 * Whether all metrics together, retired ones included, stay within every cap.
 *
 * PRIVACY: answers under a retired name still count. Future days count too: a clock may have been
 * set back.
 */
function isWithinCaps(
  accounts: Accounts,
  { metric, epoch }: Charge,
  cost: number,
  { bySpan, crowds }: Caps,
): boolean {
  const today = lastDay(epoch, metric.epoch);
  for (const [days, cap] of bySpan) {
    const sums = Object.values(accounts).map((account) => sumAfter(account.days, today - days));
    if (sumOf(sums) + cost > cap + ROUNDING) return false;
  }
  const crowd = crowds?.costs.get(metric.name);
  if (!crowds || crowd === undefined) return true;
  return crowdsSince(accounts, today - YEAR_DAYS) + crowd <= crowds.room * (1 + ROUNDING);
}

/** The account, with the oldest epochs counted as reported if there are too many. */
export function withBoundedEpochs(account: Account): Account {
  const epochs = Object.keys(account.epochs).map(Number);
  const excess = epochs.length - EPOCHS;
  if (excess <= 0) return account;
  const oldest = epochs.sort((first, second) => first - second)[excess - 1];
  return oldest === undefined ? account : withFloor(account, oldest);
}

/** The days, with the oldest two merged if there are too many. */
function recent(days: Numbers): Numbers {
  const [oldest, secondOldest, ...extra] = Object.keys(days).sort(
    (first, second) => Number(first) - Number(second),
  );
  if (oldest === undefined || secondOldest === undefined || extra.length + 2 <= DAYS) return days;
  const { [oldest]: oldestAmount = 0, ...rest } = days;
  return recent(raised(rest, secondOldest, oldestAmount));
}

function sumAfter(numbers: Numbers, day: number): number {
  return sumOf(Object.values(filtered(numbers, (number) => number > day)));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
