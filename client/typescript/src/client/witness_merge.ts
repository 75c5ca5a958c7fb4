/**
 * Merges a device's state with its witness after the state was lost or restored from a backup. The
 * result is as strict as the stricter of both. Loaded only if that happened.
 */
import { number, ownValue, table, text } from "../catalog/json.js";
import { withFloor, NEW_ACCOUNT, type Account, type Accounts, type Numbers } from "./account.js";
import { isOn, turned, type Consent } from "./consent.js";
import { withCounts, loadConsent, type Device } from "./device.js";
import { loadAccounts } from "./ledger.js";
import { loadTrust } from "./trust.js";

/**
 * The device, merged with its witness: it keeps every loss that either of them recorded, and it
 * permits nothing that one of them forbids.
 *
 * PRIVACY: the budget that was spent under a lost state stays spent, and an opt-out stays.
 *
 * If the witness cannot be read, the device stays as it is and counts the fault.
 */
export function mergedWithWitness(device: Device, witness: string): Device {
  try {
    return mergedUnchecked(device, witness);
  } catch {
    return { ...device, counts: withCounts(device.counts, ["witness_damaged"]) };
  }
}

function mergedUnchecked(device: Device, witness: string): Device {
  const document = table(JSON.parse(witness) as unknown);
  const [state, commits] = [text(document["state"]), number(document["commits"])];
  if (state === device.state && commits <= device.commits) return device;
  const consent = loadConsent(table(document["consent"]));
  const isNew = device.commits === 0;
  const trust = document["trust"] === null ? null : loadTrust(document["trust"]);
  return {
    ...device,
    state,
    commits: Math.max(commits, device.commits),
    consent: isNew ? consent : mergeConsent(device.consent, consent, state === device.state),
    accounts: mergeAccounts(device.accounts, loadAccounts(document["accounts"])),
    // If both have the same history, the witness is the later one: it has seen newer bundles and a
    // newer state of the log.
    trust: state === device.state ? (trust ?? device.trust) : (device.trust ?? trust),
    counts: withCounts(device.counts, ["state_lost"]),
  };
}

/**
 * The merged accounts: for each metric the stricter limits of both, and the responses of the first.
 */
function mergeAccounts(first: Accounts, second: Accounts): Accounts {
  const names = new Set([...Object.keys(first), ...Object.keys(second)]);
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      stricter(ownValue(first, name) ?? NEW_ACCOUNT, ownValue(second, name) ?? NEW_ACCOUNT),
    ]),
  );
}

/** The stricter of two accounts, figure by figure. Needed if one of them misses some reports. */
function stricter(first: Account, second: Account): Account {
  const account: Account = {
    ...first,
    spent: Math.max(first.spent, second.spent),
    central: Math.max(first.central, second.central),
    floor: Math.max(first.floor, second.floor),
    epochs: larger(first.epochs, second.epochs),
    losses: larger(first.losses, second.losses),
    responses: first.responses,
    days: larger(first.days, second.days),
    crowds: larger(first.crowds, second.crowds),
    filled: larger(first.filled, second.filled),
  };
  return withFloor({ ...account, floor: -1 }, account.floor);
}

function larger(first: Numbers, second: Numbers): Numbers {
  const names = Object.keys({ ...first, ...second });
  return Object.fromEntries(names.map((key) => [key, Math.max(first[key] ?? 0, second[key] ?? 0)]));
}

/**
 * The merged consent of two records.
 *
 * ordered: whether `later` continues the history of `earlier`. Then the later choice holds.
 * Otherwise the order of the two choices is unknown, and the more restrictive choice holds.
 */
function mergeConsent(earlier: Consent, later: Consent, ordered: boolean): Consent {
  const generation = Math.max(earlier.generation, later.generation);
  const since = Math.max(earlier.since, later.since);
  if (ordered) return { ...later, generation, since };
  const isEnabled = isOn(earlier.generation) && isOn(later.generation);
  return {
    generation: turned(generation, isEnabled),
    preference: smallerLimit(earlier.preference, later.preference),
    maxLocal: smallerLimit(earlier.maxLocal, later.maxLocal),
    since,
  };
}

function smallerLimit(first: number | null, second: number | null): number | null {
  const smaller = Math.min(first ?? Infinity, second ?? Infinity);
  return smaller === Infinity ? null : smaller;
}
