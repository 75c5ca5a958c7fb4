/** A device: its secret, consent, ledger, trust and counts, as one document. */
import { listed, number, table, text, type Table } from "../catalog/json.js";
import type { Notice } from "../catalog/sampling.js";
import type { Consent } from "./consent.js";
import { UNASKED } from "./consent.js";
import type { Accounts } from "./account.js";
import { loadAccounts } from "./ledger.js";
import { loadTrust, type Trust } from "./trust.js";
import type { Wallet } from "./token_wallet.js";

/**
 * The state of this device, for all tabs, workers and processes. state: the random name of its
 * history; commits: the number of changes. secret: 32 bytes in hexadecimal. counts: given-up
 * payloads by reason, and faults of the state by name. notice: the newest received notice of the
 * operator. wallet: the tokens, if any were requested.
 */
export interface Device {
  readonly state: string;
  readonly commits: number;
  readonly secret: string;
  readonly consent: Consent;
  readonly accounts: Accounts;
  readonly counts: Readonly<Record<string, number>>;
  readonly trust: Trust | null;
  readonly notice: Notice | null;
  readonly wallet: Wallet | null;
  /** Events that were not reported yet; absent if there are none. */
  readonly events?: Events | null;
}

/** Counts of events under a number of consent, by metric, epoch and event (or cell). */
export interface Events {
  readonly generation: number;
  readonly counts: readonly (readonly [
    metric: string,
    epoch: number,
    event: string,
    times: number,
  ])[];
}

const SECRET_BYTES = 32;
const SECRET = /^[0-9a-f]{64}$/;

/** A new device. random: draws bytes, in hexadecimal; one that stores nothing needs none. */
export function newDevice(random = randomHex): Device {
  return {
    ...{ state: random(8), commits: 0, secret: random(SECRET_BYTES) },
    ...{ consent: UNASKED, accounts: {}, counts: {}, trust: null, notice: null, wallet: null },
  };
}

/** The device in a document. @throws TypeError the document is not a device. */
export function loadDevice(value: unknown): Device {
  const document = table(value);
  if (!SECRET.test(text(document["secret"]))) throw new TypeError("its secret is invalid");
  return {
    ...(document as object), // fields of a newer version are preserved
    state: text(document["state"]),
    commits: number(document["commits"]),
    secret: text(document["secret"]),
    consent: loadConsent(table(document["consent"])),
    accounts: loadAccounts(document["accounts"]),
    counts: Object.fromEntries(
      Object.entries(table(document["counts"])).map(([name, count]) => [name, number(count)]),
    ),
    trust: document["trust"] === null ? null : loadTrust(document["trust"]),
    notice: loadNotice(document["notice"] ?? null),
    wallet: (document["wallet"] ?? null) as Wallet | null,
  };
}

/** The device's content for the witness: neither the secret nor tags. */
export function witnessed({ state, commits, consent, accounts, trust }: Device): string {
  const plainAccounts: Accounts = Object.fromEntries(
    Object.entries(accounts).map(([name, account]) => [name, { ...account, responses: {} }]),
  );
  return JSON.stringify({ state, commits, consent, accounts: plainAccounts, trust });
}

/** The counts, increased by one for each name. */
export function withCounts(counts: Device["counts"], names: readonly string[]): Device["counts"] {
  return names.reduce((sum, name) => ({ ...sum, [name]: (sum[name] ?? 0) + 1 }), counts);
}

/** Random bytes, in hexadecimal. */
function randomHex(bytes: number): string {
  const bytesDrawn = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(bytesDrawn, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function loadNotice(value: unknown): Notice | null {
  if (value === null) return null;
  const document = table(value);
  return {
    ...{ number: number(document["number"]), until: number(document["until"]) },
    line: listed(document["line"]).map(text),
    steps: table(document["steps"]) as Notice["steps"],
  };
}

/** The consent in a document. @throws TypeError the document has no valid consent. */
export function loadConsent(consent: Table): Consent {
  const limitOf = (value: unknown) => (value === null ? null : number(value));
  return {
    ...(consent as object),
    generation: number(consent["generation"]),
    preference: limitOf(consent["preference"]),
    maxLocal: limitOf(consent["maxLocal"]),
    since: number(consent["since"]),
  };
}
