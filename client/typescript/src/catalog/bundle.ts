/**
 * The signed bundle, read: whom it is of, the metrics and the opening keys.
 *
 * It is two lines of JSON: who signed it, and what was signed. The signature (Ed25519) is over the
 * second line's bytes as they stand.
 */
import { BundleRefused, UnknownMetric } from "../errors.js";
import { joined, type Bytes } from "../mechanisms/packing.js";
import { capsOf, type Caps } from "./caps.js";
import { listed, number, table, text, type Table } from "./json.js";
import { metricFrom, type Metric, type Stream } from "./metric.js";
import type { Kem } from "../transport/sealing.js";
import { isSigned } from "./signatures.js";

const SIGNED = new TextEncoder().encode("hubbub/1 bundle\n");
const HANDOVER = new TextEncoder().encode("hubbub/1 handover\n");
const NEWLINE = 10;
const MAX_BYTES = 64 << 20;
const KEY_BYTES = 32;
const X_WING_BYTES = 1216;
const MAX_HANDOVERS = 16;

/**
 * A public key that reports are sealed to, for epochs that start in [start, end) seconds. xWing: its
 * half for metrics that are sealed by X-Wing, in bundles that have any.
 */
export interface OpeningKey {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly publicKey: Bytes;
  readonly xWing?: Bytes;
}

/** What an operator signed. */
export interface Bundle {
  /** HOST:PORT for gRPC, or https://HOST:PORT. */
  readonly shuffler: string;
  /** PEM of the certificates that shufflers chain to; null: the system's. */
  readonly roots: string | null;
  readonly keys: readonly OpeningKey[];
  readonly metrics: ReadonlyMap<string, Metric>;
  /** Metrics that ask what this version cannot do, and why. */
  readonly unknown: ReadonlyMap<string, UnknownMetric>;
  /** Every metric and tier by the stream's name. */
  readonly streams: ReadonlyMap<string, readonly [Metric, Stream]>;
  readonly caps: Caps;
  /** Per name ever used, the digest of what it meant. */
  readonly history: Table;
  /** Grows from bundle to bundle. */
  readonly serial: number;
  /** The operator's keys in base64, oldest first; the last one signed it. */
  readonly line: readonly string[];
  /** Of an installation whose numbers protect nobody. */
  readonly development: boolean;
}

/**
 * The bundle in a file's content. operator: the key in base64 that the app pins, which signed it or
 * handed over to who did; null for whoever signed it.
 *
 * @throws BundleRefused malformed, altered, or another operator's.
 */
export async function openBundle(signed: Bytes, operator: string | null): Promise<Bundle> {
  try {
    const [head, body] = linesOf(signed);
    const seal = parsed(head);
    const signer = text(seal["operator"]);
    if (!(await isSigned(key(signer), fromText(text(seal["signature"])), joined(SIGNED, body)))) {
      throw new BundleRefused("altered after signing");
    }
    const told = parsed(body);
    const line = await lineOf(listed(told["handovers"] ?? []).map(table), signer);
    if (operator !== null && !line.includes(operator)) {
      throw new BundleRefused("another operator's");
    }
    return await bundleOf(told, line);
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
  const metric = bundle.metrics.get(name);
  if (metric) return metric;
  const names = [...bundle.metrics.keys()].join(", ");
  throw (
    bundle.unknown.get(name) ??
    new UnknownMetric(`the bundle has no metric "${name}"; it has ${names}`)
  );
}

/** The key of an epoch that starts at this second, if there is one yet. */
export function keyAt(keys: readonly OpeningKey[], start: number): OpeningKey | undefined {
  return keys.find((key) => key.start <= start && start < key.end);
}

/** What a metric of this KEM is sealed to; undefined if there is no key, or it has no such half. */
export function halfOf(key: OpeningKey | undefined, kem: Kem): Bytes | undefined {
  return kem === "x-wing" ? key?.xWing : key?.publicKey;
}

/** The bytes of a text, as bundles hold keys. Throws an Error if it is none. */
export function fromText(base64: string): Bytes {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** The text of some bytes. */
export function toText(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function linesOf(signed: Bytes): [Bytes, Bytes] {
  if (signed.length > MAX_BYTES) throw new BundleRefused(`larger than ${MAX_BYTES >> 20} MiB`);
  let end = signed.length;
  while (end > 0 && signed[end - 1] === NEWLINE) end -= 1;
  const [first, last] = [signed.indexOf(NEWLINE), signed.lastIndexOf(NEWLINE, end - 1)];
  if (first === -1 || first !== last) {
    throw new BundleRefused(
      "not two lines; those with a third are in a log, which is not read here",
    );
  }
  return [signed.slice(0, first), signed.slice(first + 1, end)];
}

function parsed(line: Uint8Array): Table {
  return table(JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line)));
}

/** The keys that handovers lead through, `signer` last. */
async function lineOf(handovers: readonly Table[], signer: string): Promise<string[]> {
  if (handovers.length > MAX_HANDOVERS) throw new BundleRefused("it has too many handovers");
  const line = [...handovers.map((handover) => text(handover["old"])), signer];
  for (const [at, handover] of handovers.entries()) {
    const [old, next] = [key(text(handover["old"])), text(handover["new"])];
    const signature = fromText(text(handover["signature"]));
    if (
      next !== line[at + 1] ||
      !(await isSigned(old, signature, joined(HANDOVER, old, key(next))))
    ) {
      throw new BundleRefused("its handovers do not lead to the key that signed");
    }
  }
  if (new Set(line).size !== line.length) throw new BundleRefused("its handovers come back");
  return line;
}

async function bundleOf(body: Table, line: readonly string[]): Promise<Bundle> {
  // 2: some list of values has grown. Such a metric is not known here, the others are.
  if (body["version"] !== 1 && body["version"] !== 2) throw new BundleRefused("of a newer version");
  if (body["log"] !== undefined) {
    throw new BundleRefused("it is in a transparency log, which this version cannot check");
  }
  const development = body["development"] === true;
  const metrics = new Map<string, Metric>();
  const unknown = new Map<string, UnknownMetric>();
  for (const [name, entry] of Object.entries(table(body["metrics"]))) {
    try {
      metrics.set(name, await metricFrom(name, table(entry), development));
    } catch (error) {
      if (!(error instanceof UnknownMetric)) throw error;
      unknown.set(name, error);
    }
  }
  const streams = [...metrics.values()].flatMap((metric) =>
    metric.streams.map((stream) => [stream.name, [metric, stream]] as const),
  );
  return {
    shuffler: text(body["shuffler"]),
    roots: body["roots"] === null ? null : text(body["roots"]),
    keys: listed(body["keys"]).map((key) => openingKey(table(key))),
    metrics,
    unknown,
    streams: new Map(streams),
    caps: await capsOf(body["caps"]),
    history: table(body["history"] ?? {}),
    serial: number(body["serial"] ?? 0),
    line,
    development,
  };
}

function openingKey(told: Table): OpeningKey {
  const publicKey = key(text(told["public"]));
  const half = told["x_wing"];
  return {
    ...{
      id: number(told["id"]),
      start: number(told["start"]),
      end: number(told["end"]),
      publicKey,
    },
    ...(half === undefined ? {} : { xWing: key(text(half), X_WING_BYTES) }),
  };
}

function key(base64: string, size = KEY_BYTES): Bytes {
  const bytes = fromText(base64);
  if (bytes.length !== size) throw new BundleRefused(`a key is not ${size} bytes`);
  return bytes;
}
