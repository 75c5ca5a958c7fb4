/**
 * Accounts: how much a device has revealed about each metric, as sums by epoch, day and response.
 */
import { epochAt } from "../catalog/epochs.js";
import { ownValue } from "../catalog/json.js";
import type { Metric } from "../catalog/metric.js";
import type { Device } from "./device.js";

/**
 * The losses about one metric, over all its tiers, in nats. It contains counts and tags, never a
 * value.
 *
 * spent: the maximum loss of all reports so far, to anyone; central: the same, to an observer of
 * whole epochs. floor: epochs up to this one count as reported. epochs: reports by epoch above the
 * floor, 0 if the device ran and still has to report a default; losses: the loss of each epoch.
 * responses: reports by permanent response. days: loss by the day on which an epoch ends; crowds:
 * the same for crowds, as mu squared. filled: 1 for epochs above the floor with a filler and no
 * report.
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

/** An account without charges. */
export const NEW_ACCOUNT: Account = {
  ...{ spent: 0, central: 0, floor: -1 },
  ...{ epochs: {}, losses: {}, responses: {}, days: {}, crowds: {}, filled: {} },
};

/** The account of a metric. */
export function accountOf(accounts: Accounts, { name }: Metric): Account {
  return ownValue(accounts, name) ?? NEW_ACCOUNT;
}

/** An account in which every epoch up to this one counts as reported. */
export function withFloor(account: Account, epoch: number): Account {
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

/**
 * The device's accounts. Epochs up to the one in which the person had everything forgotten count as
 * reported.
 */
export function accountsOf({ accounts, consent }: Device, metric: Metric) {
  if (!consent.since) return accounts;
  const account = accountOf(accounts, metric);
  return { ...accounts, [metric.name]: withFloor(account, epochAt(consent.since, metric.epoch)) };
}

/** The numbers with `amount` added under a key. */
export function raised(numbers: Numbers, key: string | number, amount: number): Numbers {
  return { ...numbers, [key]: (ownValue(numbers, String(key)) ?? 0) + amount };
}

/** The numbers whose keys fulfil a condition. */
export function filtered(numbers: Numbers, holds: (key: number) => boolean): Numbers {
  return Object.fromEntries(Object.entries(numbers).filter(([key]) => holds(Number(key))));
}
