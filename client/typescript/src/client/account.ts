/** Accounts: what a device has said about each metric, as sums by epoch, day and response. */
import { epochAt } from "../catalog/epochs.js";
import { own } from "../catalog/json.js";
import type { Metric } from "../catalog/metric.js";
import type { Device } from "./device.js";

/**
 * What was said about one metric, over all its tiers, in nats. Holds counts and tags, never a value.
 *
 * spent: the most that all reports so far can say, whoever looks; central: the same to who sees whole
 * epochs alone. floor: epochs up to this one count as reported. epochs: reports by epoch above it, 0 where this
 * device ran and has a default to say of it;
 * losses: what they can say. responses: reports by permanent response. days: what was spent by the
 * day that an epoch ends on; crowds: the same of crowds, as mu squared. filled: 1 for epochs above the
 * floor of which a filler was sent and no report.
 */
export interface Account {
  readonly spent: number;
  readonly central: number;
  readonly floor: number;
  readonly epochs: Numbers;
  readonly losses: Numbers;
  readonly responses: Numbers;
  readonly days: Numbers;
  readonly crowds: Numbers;
  readonly filled: Numbers;
}

/** Accounts by metric. */
export type Accounts = Readonly<Record<string, Account>>;
/** Amounts by epoch, day or response. */
export type Numbers = Readonly<Record<string, number>>;

/** An account that nothing was charged to. */
export const OPENED: Account = {
  ...{ spent: 0, central: 0, floor: -1 },
  ...{ epochs: {}, losses: {}, responses: {}, days: {}, crowds: {}, filled: {} },
};

/** A metric's, among others. */
export function accountOf(accounts: Accounts, { name }: Metric): Account {
  return own(accounts, name) ?? OPENED;
}

/** The account in which every epoch up to this one counts as reported. */
export function closed(account: Account, epoch: number): Account {
  if (epoch <= account.floor) return account;
  const laterThan = (numbers: Numbers) => filtered(numbers, (key) => key > epoch);
  const { epochs, losses, filled } = account;
  const laterSums = {
    epochs: laterThan(epochs),
    losses: laterThan(losses),
    filled: laterThan(filled),
  };
  return { ...account, floor: epoch, ...laterSums };
}

/** The device's accounts, where the epoch of a metric that ran when all was forgotten is over. */
export function opened({ accounts, consent }: Device, metric: Metric) {
  if (!consent.since) return accounts;
  const account = accountOf(accounts, metric);
  return { ...accounts, [metric.name]: closed(account, epochAt(consent.since, metric.epoch)) };
}

/** With so much more under a key. */
export function raised(numbers: Numbers, key: string | number, amount: number): Numbers {
  return { ...numbers, [key]: (own(numbers, String(key)) ?? 0) + amount };
}

/** Those under keys that hold. */
export function filtered(numbers: Numbers, holds: (key: number) => boolean): Numbers {
  return Object.fromEntries(Object.entries(numbers).filter(([key]) => holds(Number(key))));
}
