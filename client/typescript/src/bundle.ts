/**
 * The signed bundle, read: whom it is of, the metrics and the opening keys.
 *
 * It is two lines of JSON: who signed it, and what was signed. The signature (Ed25519) is over the
 * second line's bytes as they stand.
 */
import { BundleRefused, UnknownMetric } from "./errors.js";
import { listed, number, table, text, type Table } from "./json.js";
import { SEAL_BYTES, type Kem } from "./sealing.js";

const SIGNED = new TextEncoder().encode("hubbub/1 bundle\n");
const NEWLINE = 10;
const MAX_BYTES = 64 << 20;
const KEY_BYTES = 32;
const X_WING_BYTES = 1216;
// What a metric of listed values may say. One that says more (tiers, a chance to take part, ranges of
// numbers, a crowd) asks more of a device than this version does, so it is refused, not misread.
const METRIC_FIELDS: ReadonlySet<string> = new Set([
  ...["mechanism", "version", "epsilon", "parameters", "values", "epoch"],
  ...["description", "owner", "expires", "min_batch", "reports_per_epoch", "lifetime_epsilon"],
  // How the mechanism was chosen and how numbers are published: nothing that a device does.
  ...["choice", "release"],
  "kem",
]);

/**
 * A public key that reports are sealed to, for epochs that start in [start, end) seconds. xWing: its
 * half for metrics that are sealed by X-Wing, in bundles that have any.
 */
export interface OpeningKey {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly xWing?: Uint8Array<ArrayBuffer>;
}

/** One question that an app may answer. expires: the last day of reports, YYYY-MM-DD in UTC. */
export interface Metric {
  readonly name: string;
  readonly mechanism: string;
  readonly version: number;
  readonly epsilon: number;
  readonly values: readonly string[];
  readonly epoch: string;
  readonly expires: string;
  readonly kem: Kem;
}

/** What an operator signed. roots: PEM of the certificates that shufflers chain to; null: the system's. */
export interface Bundle {
  readonly shuffler: string;
  readonly roots: string | null;
  readonly keys: readonly OpeningKey[];
  readonly metrics: Table;
}

/**
 * The bundle in a file's content. operator: the 32 bytes of the key that the app pins.
 *
 * @throws BundleRefused malformed, altered, or another operator's.
 */
export async function openBundle(
  signed: Uint8Array<ArrayBuffer>,
  operator: Uint8Array<ArrayBuffer>,
): Promise<Bundle> {
  try {
    const [head, body] = linesOf(signed);
    const seal = parsed(head);
    if (seal["operator"] !== toText(operator)) throw new BundleRefused("another operator's");
    await verify(operator, fromText(text(seal["signature"])), body);
    return bundleOf(parsed(body));
  } catch (error) {
    const why = error instanceof BundleRefused ? error.message : "not one, or of a newer version";
    throw new BundleRefused(`the bundle is refused: ${why}; ship it as the operator built it`, {
      cause: error,
    });
  }
}

/**
 * A metric by its name.
 *
 * @throws UnknownMetric there is none, or it asks for more than this version can do.
 */
export function metricOf(bundle: Bundle, name: string): Metric {
  if (!Object.hasOwn(bundle.metrics, name)) {
    throw new UnknownMetric(`the bundle has no metric "${name}"; name one that it has`);
  }
  try {
    return metricFrom(name, table(bundle.metrics[name]));
  } catch (error) {
    const remedy = "this version reports listed values alone; use the Python SDK";
    throw new UnknownMetric(`metric "${name}" cannot be reported: ${remedy}`, { cause: error });
  }
}

/** The key of an epoch that starts at this second, if there is one yet. */
export function keyAt(keys: readonly OpeningKey[], start: number): OpeningKey | undefined {
  return keys.find((key) => key.start <= start && start < key.end);
}

/** What a metric of this KEM is sealed to; undefined if the key has no such half. */
export function halfOf(key: OpeningKey, kem: Kem): Uint8Array<ArrayBuffer> | undefined {
  return kem === "x-wing" ? key.xWing : key.publicKey;
}

/** The bytes of a text, as bundles hold keys. Throws an Error if it is none. */
export function fromText(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function toText(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

function linesOf(
  signed: Uint8Array<ArrayBuffer>,
): [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>] {
  if (signed.length > MAX_BYTES) throw new BundleRefused(`larger than ${MAX_BYTES >> 20} MiB`);
  let end = signed.length;
  while (end > 0 && signed[end - 1] === NEWLINE) end -= 1;
  const [first, last] = [signed.indexOf(NEWLINE), signed.lastIndexOf(NEWLINE, end - 1)];
  if (first === -1 || first !== last) throw new BundleRefused("not two lines");
  return [signed.slice(0, first), signed.slice(first + 1, end)];
}

async function verify(
  operator: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  body: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const key = await crypto.subtle.importKey("raw", operator, "Ed25519", false, ["verify"]);
  const message = new Uint8Array([...SIGNED, ...body]);
  if (!(await crypto.subtle.verify("Ed25519", key, signature, message))) {
    throw new BundleRefused("altered after signing");
  }
}

function parsed(line: Uint8Array): Table {
  return table(JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line)));
}

function bundleOf(body: Table): Bundle {
  if (body["version"] !== 1) throw new BundleRefused("of a newer version");
  return {
    shuffler: text(body["shuffler"]),
    roots: body["roots"] === null ? null : text(body["roots"]),
    keys: listed(body["keys"]).map((key) => keyOf(table(key))),
    metrics: table(body["metrics"]),
  };
}

function keyOf(key: Table): OpeningKey {
  const publicKey = fromText(text(key["public"]));
  if (publicKey.length !== KEY_BYTES)
    throw new BundleRefused(`an opening key is not ${KEY_BYTES} bytes`);
  const xWing = key["x_wing"] === undefined ? undefined : fromText(text(key["x_wing"]));
  if (xWing && xWing.length !== X_WING_BYTES)
    throw new BundleRefused(`the X-Wing half of an opening key is not ${X_WING_BYTES} bytes`);
  return {
    ...{ id: number(key["id"]), start: number(key["start"]), end: number(key["end"]), publicKey },
    ...(xWing ? { xWing } : {}),
  };
}

function metricFrom(name: string, entry: Table): Metric {
  const more = Object.keys(entry).find((field) => !METRIC_FIELDS.has(field));
  if (more !== undefined) throw new UnknownMetric(`it has ${more}`);
  return {
    name,
    mechanism: text(entry["mechanism"]),
    version: number(entry["version"]),
    epsilon: number(entry["epsilon"]),
    values: listed(entry["values"]).map(text),
    epoch: text(entry["epoch"]),
    expires: text(entry["expires"]),
    kem: kemOf(entry["kem"]),
  };
}

function kemOf(kem: unknown): Kem {
  if (kem === undefined) return "x25519";
  const found = text(kem);
  if (!Object.hasOwn(SEAL_BYTES, found)) throw new UnknownMetric(`its kem is ${found}`);
  return found as Kem;
}
